#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# The rooms of src: a file includes, and uses, only what is in its room or in one below. What it uses
# is what its object in the build tree asks the linker for. And a header declares only what the .c of
# its name defines.
# Usage: rooms.py SOURCE-TREE BUILD-TREE

import re
import subprocess
import sys
from pathlib import Path

ROOMS = ('common iwarp/wire iwarp/conn iwarp/env iwarp/faults iwarp/advice iwarp/engine iwarp/local iwarp/device iwarp/observe iwarp/cq '
         'iwarp/mem iwarp/qp iwarp/cm iwarp/qpn iwarp/ud iwarp/process iwarp/verbs').split()
BELOW = {room: ROOMS[:i + 1] for i, room in enumerate(ROOMS)}

# librdmacm sees this header of the RNIC and what that includes, and the public verbs.
BELOW['cma'] = ['common', 'cma']
BELOW['cma/rs'] = ['common', 'cma', 'cma/rs']
FACE = 'iwarp/cm/port.h'
PUBLIC = 'ibv_'

# These see the public calls of both libraries, as any program does.
BELOW['compat'] = ['compat']
BELOW['uverbs'] = ['common', 'compat', 'uverbs']
BELOW['kverbs'] = ['compat', 'kverbs']
BELOW['al'] = ['common', 'compat', 'al']
BELOW['preload'] = ['common', 'uverbs', 'preload']
RSOCKETS = ('rsocket rbind rlisten raccept rconnect rshutdown rclose rget rset rrecv rsend rpoll '
            'rfcntl').split()
PROGRAMS = {'uverbs': ('ibv_', 'rdma_'), 'al': ('ibv_', 'rdma_'), 'kverbs': ('ibv_', 'rdma_'),
            'preload': ('ibv_', '_ibv_query_gid_ex', 'rdma_', 'rs_interrupt',
                        'rs_set_interruptible', *RSOCKETS)}

# Headers that declare what other files define, and why.
SHARED = {
    'cma/cma.h': 'the one header of librdmacm, whose files are parts of one thing',
    'common/interrupt.h': 'the door of librdmacm for librspreload',
    'cma/rs/rs.h': 'the one header of rsockets, whose files are parts of one thing',
    'iwarp/cm/endpoint.h': 'the steps of one struct iw_cm, file by file',
    'iwarp/cm/port.h': 'the face of the RNIC for librdmacm',
    'iwarp/env/later.h': 'stands in for <infiniband/verbs.h> where that is older',
    'iwarp/qp/link.h': 'what the CM does with a QP',
    'iwarp/qp/qp.h': 'what the verbs do with a QP',
    'iwarp/qpn/dialling.h': 'the inside of one struct iw_dial, of dial.c',
    'iwarp/verbs/ops.h': 'the slots of struct ibv_context, which context.c fills',
    'iwarp/verbs/private.h': 'the names of verbs/private.names',
}

# What configure may have built instead of the other.
INSTEAD = {
    'iwarp/conn/stream_tls_none.c': 'iwarp/conn/stream_tls.c',
    'iwarp/env/random_kernel.c': 'iwarp/env/random.c',
    'iwarp/env/tls_none.c': 'iwarp/env/tls.c',
}


def read(path):
    """The text of a source file without comments."""
    return re.sub(r'/\*.*?\*/|//[^\n]*', ' ', path.read_text(), flags=re.S)


def included(file, texts):
    """The files of src that the text of one includes."""
    names = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', texts[file], flags=re.M)
    for name in names:
        places = [name, f'iwarp/{name}', f'{Path(file).parent}/{name}']
        yield next((place for place in places if place in texts), name)


def declared(text):
    """What functions and variables a header declares, and some words more."""
    text = re.sub(r'^[ \t]*#(?:\\\n|.)*', '', text, flags=re.M)
    text = re.sub(r'__attribute__ *\(\((?:\([^()]*\)|[^()])*\)\)', '', text)
    while re.search(r'\{[^{}]+\}', text):
        text = re.sub(r'\{[^{}]+\}', '{}', text)
    for statement in re.split(r';|\{(?=\})|\}', text):
        if not re.match(r'\s*(static|typedef)\b', statement):
            yield from re.findall(r'^[^()]*?(\w+)\s*\(|\bextern\b[^()]*?(\w+)\s*(?:\[.*)?$',
                                  statement, flags=re.S)


def built(build, file):
    """The object of a source file, or None; libtool and automake have several names for it."""
    source = build / 'src' / file
    names = [f'{source.stem}.o', f'*_la-{source.stem}.o']
    return next((path for folder in (source.parent, source.parent / '.libs') for name in names
                 for path in folder.glob(name)), None)


def symbols(path):
    """What an object defines for others, and what it uses of them."""
    out = subprocess.run(['nm', '-g', path], check=True, capture_output=True, text=True).stdout
    defined, used = set(), set()
    for *_, kind, name in map(str.split, out.splitlines()):
        (used if kind in 'Uwv' else defined).add(name)
    return defined, used


class Sources:
    """The files of the rooms: what each includes, declares, defines and uses."""

    def __init__(self, tree, build):
        src = tree / 'src'
        self.room = {str(path.relative_to(src)): room
                     for room in BELOW for path in sorted((src / room).glob('*.[ch]'))}
        texts = {file: read(src / file) for file in self.room}
        self.includes = {file: set(included(file, texts)) for file in texts}
        self.objects = {file: built(build, file) for file in texts if file.endswith('.c')}
        for other, file in INSTEAD.items():
            self.objects[file] = self.objects.pop(other) or self.objects[file]
        self.home, self.uses = {}, {}
        self.own = {room: set() for room in BELOW}  # kverbs and al have names in common
        for file, path in self.objects.items():
            defined, self.uses[file] = symbols(path) if path else (set(), set())
            self.own[self.room[file]] |= defined
            if self.room[file] != 'preload':  # whose names are those of libc
                self.home.update(dict.fromkeys(defined, file))
        self.declares = {file: {name for pair in declared(texts[file]) for name in pair
                                if name in self.home}
                         for file in texts if file.endswith('.h')}

    def face(self):
        """FACE, and the headers that it includes."""
        found, more = set(), {FACE}
        while more:
            found |= more
            more = set().union(*(self.includes[file] for file in more)) - found
        return found

    def upward(self):
        face = self.face()
        seen = set().union(*(self.declares[file] for file in face))
        seen.update(name for name in self.home if name.startswith(PUBLIC))
        for file, room in self.room.items():
            may = (face, seen) if room in ('cma', 'cma/rs') else (set(), set())
            for other in sorted(self.includes[file] - may[0]):
                if self.room.get(other) not in BELOW[room]:
                    yield f'{file}: includes {other}, which is not below'
            public = {name for name in self.home if name.startswith(PROGRAMS.get(room, ()))}
            own = self.own[room]
            for name in sorted(self.uses.get(file, set()) & set(self.home) - may[1] - public - own):
                if self.room[self.home[name]] not in BELOW[room]:
                    yield f'{file}: uses {name} of {self.home[name]}, which is not below'

    def of_others(self, file):
        return [name for name in sorted(self.declares[file])
                if self.home[name] != f'{file[:-2]}.c']

    def misplaced(self):
        for file in sorted(set(self.declares) - set(SHARED)):
            for name in self.of_others(file):
                yield f'{file}: declares {name} of {self.home[name]}'
        for file in SHARED:
            if not self.of_others(file):
                yield f'{file}: declares only its own, and is an exception no more'

    def missing(self):
        for file, path in self.objects.items():
            if not path:
                yield f'{file}: no object of it, "make check" makes one'


if len(sys.argv) != 3:
    sys.exit(f'usage: {sys.argv[0]} SOURCE-TREE BUILD-TREE')
sources = Sources(*map(Path, sys.argv[1:]))
faults = [*sources.missing(), *sources.upward(), *sources.misplaced()]
print(*faults, sep='\n', end='\n' if faults else '')
sys.exit(bool(faults))
