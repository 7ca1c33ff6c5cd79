/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank of a group that reduces, gathers and broadcasts over gloo's ibverbs transport, from 4
 * bytes to 16 MB, and checks every element. gloo.sh builds it. Nothing is freed: gloo ends a
 * program that destroys an algorithm before it has heard that its last message is out. usage: gloo
 * RANK SIZE FOLDER DEVICE GID-INDEX
 */
#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <vector>

static constexpr int MOST = (16 << 20) / sizeof(uint32_t);

using Group = std::shared_ptr<gloo::rendezvous::Context>;

static uint32_t element(int rank, int i)
{
    return uint32_t(rank + 1) * 2654435761u + uint32_t(i) * 40503u;
}

static void expect(const char *what, int count, int i, uint32_t got, uint32_t want)
{
    if (got == want)
        return;
    fprintf(stderr, "%s of %d: element %d is %u, not %u\n", what, count, i, got, want);
    exit(1);
}

static void fill(std::vector<uint32_t> &v, int rank)
{
    for (size_t i = 0; i < v.size(); i++)
        v[i] = element(rank, int(i));
}

template <class Algorithm> static void reduce(const char *what, const Group &group, int count)
{
    auto &v = *new std::vector<uint32_t>(count);
    fill(v, group->rank);
    (new Algorithm(group, {v.data()}, count))->run();
    for (int i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int rank = 0; rank < group->size; rank++)
            sum += element(rank, i);
        expect(what, count, i, v[i], sum);
    }
}

static void gather(const Group &group, int count)
{
    auto &own = *new std::vector<uint32_t>(count);
    auto &all = *new std::vector<uint32_t>(size_t(count) * group->size);
    fill(own, group->rank);
    (new gloo::AllgatherRing<uint32_t>(group, {own.data()}, all.data(), count))->run();
    for (int rank = 0; rank < group->size; rank++)
        for (int i = 0; i < count; i++)
            expect("all-gather", count, i, all[size_t(rank) * count + i], element(rank, i));
}

static void broadcast(const Group &group, int count)
{
    auto &v = *new std::vector<uint32_t>(count);
    fill(v, group->rank);
    int root = count % group->size;
    (new gloo::BroadcastOneToAll<uint32_t>(group, {v.data()}, count, root))->run();
    for (int i = 0; i < count; i++)
        expect("broadcast", count, i, v[i], element(root, i));
}

/* What connectFullMesh() takes: a Store, or in later releases a pointer. */
struct Store {
    std::shared_ptr<gloo::rendezvous::Store> store;
    operator gloo::rendezvous::Store &() { return *store; }
    operator std::shared_ptr<gloo::rendezvous::Store>() { return store; }
};

static void all(char **argv)
{
    auto device = gloo::transport::ibverbs::CreateDevice({argv[4], 1, atoi(argv[5])});
    Store store = {std::make_shared<gloo::rendezvous::FileStore>(argv[3])};
    auto &group =
        *new Group(std::make_shared<gloo::rendezvous::Context>(atoi(argv[1]), atoi(argv[2])));
    group->connectFullMesh(store, device);
    for (int count : {1, 2, 100, 4096, 70000, 1 << 18}) {
        reduce<gloo::AllreduceRing<uint32_t>>("ring all-reduce", group, count);
        reduce<gloo::AllreduceHalvingDoubling<uint32_t>>("halving all-reduce", group, count);
        gather(group, count);
        broadcast(group, count);
    }
    reduce<gloo::AllreduceRing<uint32_t>>("ring all-reduce", group, MOST);
    gather(group, MOST);
    broadcast(group, MOST);
    (new gloo::BarrierAllToAll(group))->run();
    puts("all elements are right");
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    try {
        all(argv);
    } catch (const std::exception &e) {
        fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
