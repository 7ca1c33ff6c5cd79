# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What is measured, in the order of a round: who, case, size, command. Compared things stand beside
# each other. The size is bytes of a message, or a number of connections or threads.

# trips SIZE: round trips of a fraction of a second.
trips()
{
    case $1 in
    65536) echo 8000 ;;
    1048576) echo 1000 ;;
    *) echo 30000 ;;
    esac
}

# writes SIZE: as many messages.
writes()
{
    case $1 in
    64) echo 4000000 ;;
    1024) echo 1500000 ;;
    8192) echo 400000 ;;
    65536) echo 60000 ;;
    *) echo 4000 ;;
    esac
}

# ucx_messages SIZE: as many, of UCX.
ucx_messages()
{
    case $1 in
    65536) echo 15000 ;;
    1048576) echo 1500 ;;
    *) echo 100000 ;;
    esac
}

latency_cases()
{
    local size
    for size in 8 64 512 4096 65536 1048576; do
        echo "raw poll $size raw raw_pingpong poll $size"
        echo "anywarp send_lat $size perftest ib_send_lat $size $(trips $size)"
        echo "anywarp send_lat_rings $size rings perftest ib_send_lat $size $(trips $size)"
        echo "ucx tag_lat_shm $size ucx_shm ucx tag_lat $size $(trips $size)"
        echo "libfabric rdm_lat_shm $size fi_shm $size $(trips $size)"
        echo "ucx tag_lat $size ucx tag_lat $size $(trips $size)"
        echo "libfabric msg_lat $size fi_msg $size $(trips $size)"
    done
    cat <<END
raw poll_again 64 raw raw_pingpong poll 64
anywarp rstream_rings 64 rings rstream mean 64 20000
anywarp send_lat_again_rings 64 rings perftest ib_send_lat 64 20000
anywarp rstream 64 rstream mean 64 20000
anywarp send_lat_again 64 perftest ib_send_lat 64 10000
without send_lat 64 on_other perftest ib_send_lat 64 10000
anywarp send_lat_recorded 64 recorded perftest ib_send_lat 64 10000
tls send_lat 64 in_tls perftest ib_send_lat 64 10000
anywarp send_lat_number 64 with BENCH_CM= perftest ib_send_lat 64 10000
anywarp write_lat_number 64 with BENCH_CM= perftest ib_write_lat 64 10000
anywarp write_lat 64 perftest ib_write_lat 64 10000
anywarp read_lat 64 perftest ib_read_lat 64 10000
raw block 64 raw raw_pingpong block 64
anywarp send_lat_e_spin0_rings 64 rings with ANYWARP_SPIN_US=0 perftest ib_send_lat 64 6000 -e
anywarp send_lat_e_spin0 64 with ANYWARP_SPIN_US=0 perftest ib_send_lat 64 6000 -e
anywarp send_lat_e 64 perftest ib_send_lat 64 6000 -e
anywarp read_sleeping 64 own rdma_read poll 64
anywarp read_sleeping_e_spin0 64 with ANYWARP_SPIN_US=0 own rdma_read block 64
END
}

bandwidth_cases()
{
    local size
    for size in 64 1024 8192 65536; do
        echo "raw stream $size raw raw_stream $size"
        echo "anywarp write_bw $size perftest ib_write_bw $size $(writes $size)"
        [ $size != 65536 ] || echo "raw ring $size raw raw_ring $size"
        echo "anywarp write_bw_rings $size rings perftest ib_write_bw $size $(writes $size)"
        echo "ucx tag_bw $size ucx tag_bw $size $(ucx_messages $size)"
    done
    cat <<END
raw stream 1048576 raw raw_stream 1048576
raw fpdus 1048576 raw raw_fpdus 1048576
anywarp write_bw 1048576 with ANYWARP_CRC=off perftest ib_write_bw 1048576 4000
raw ring 1048576 raw raw_ring 1048576
anywarp write_bw_rings 1048576 rings perftest ib_write_bw 1048576 4000
anywarp read_bw_rings 1048576 rings perftest ib_read_bw 1048576 4000
anywarp send_bw_rings 1048576 rings perftest ib_send_bw 1048576 4000
anywarp write_bw_crc 1048576 with ANYWARP_CRC=on perftest ib_write_bw 1048576 4000
anywarp read_bw 1048576 perftest ib_read_bw 1048576 4000
anywarp send_bw 1048576 perftest ib_send_bw 1048576 4000
anywarp rstream 1048576 rstream bw 1048576 4000
anywarp write_bw_number 1048576 with BENCH_CM= perftest ib_write_bw 1048576 4000
raw stream_beside 1048576 beside raw raw_stream 1048576
anywarp write_bw_beside 1048576 beside perftest ib_write_bw 1048576 2000
anywarp read_bw_beside 1048576 beside perftest ib_read_bw 1048576 2000
anywarp send_bw_beside 1048576 beside perftest ib_send_bw 1048576 2000
tls raw_stream 1048576 in_tls raw raw_tls stream 1048576
tls write_bw 1048576 in_tls perftest ib_write_bw 1048576 2000
ucx tag_bw 1048576 ucx tag_bw 1048576 $(ucx_messages 1048576)
raw one_a_call 64 raw raw_stream 64
raw one_a_call_polled 64 raw raw_stream poll 64
anywarp write_bw_depth1_rings 64 rings perftest ib_write_bw 64 100000 -t 1
anywarp write_bw_depth16_rings 64 rings perftest ib_write_bw 64 1000000 -t 16
anywarp write_bw_depth128_rings 64 rings perftest ib_write_bw 64 4000000 -t 128
anywarp write_bw_depth1 64 perftest ib_write_bw 64 100000 -t 1
anywarp write_bw_depth16 64 perftest ib_write_bw 64 1000000 -t 16
anywarp write_bw_depth128 64 perftest ib_write_bw 64 4000000 -t 128
anywarp write_bw_depth128_recorded 64 recorded perftest ib_write_bw 64 4000000 -t 128
without write_bw_depth128 64 on_other perftest ib_write_bw 64 4000000 -t 128
anywarp write_bw_number 64 with BENCH_CM= perftest ib_write_bw 64 4000000 -t 128
raw batch64 64 raw raw_stream 64 64
END
}

# many N: so many connections; few if --quick.
many()
{
    [ $quick = no ] && echo "$1" || echo 20
}

scale_cases()
{
    cat <<END
raw connect 1 raw raw_connect
anywarp connect 1 own rdma_connect
anywarp connect_rings 1 rings own rdma_connect
tls raw_connect 1 in_tls raw raw_tls connect
tls connect 1 in_tls own rdma_connect
anywarp empty_poll 1 own rdma_poll 1
anywarp empty_poll 1000 own rdma_poll $(many 1000)
anywarp empty_poll_threads 2 with BENCH_CPUS= own rdma_poll 1 2
anywarp pingpong 1 own rdma_pingpong 1
anywarp pingpong 1000 own rdma_pingpong $(many 1000)
anywarp pingpong_beside_bulk 1 own rdma_pingpong 1 bulk
anywarp idle 1000 own rdma_idle $(many 1000)
anywarp write_threads 1 with BENCH_CPUS= own rdma_threads 1
anywarp write_threads 2 with BENCH_CPUS= own rdma_threads 2
END
}

cases()
{
    latency_cases
    bandwidth_cases
    scale_cases
}
