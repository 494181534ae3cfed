package window

import "sync"

// shardCount is a power of two and a multiple of 64. The top bits of a hash choose the shard, the low bits choose the
// chain.
const (
	shardCount = 128
	shardShift = 64 - 7
)

func shardOf(hash uint64) uint64 { return hash >> shardShift }

// chunk is the number of counters that are allocated together. They fill 2,048 bytes.
const chunk = 23

// shard is a hash table with chains. Its counters lie in chunks that move only when a sweep makes new ones.
type shard struct {
	mu     sync.Mutex
	n      uint32 // number of counters
	heads  []uint32
	kins   []uint32 // chains by the hash of the group alone, a quarter as many
	chunks []*[chunk]counter
	_      [32]byte // to the next pair of cache lines
}

func (s *shard) at(position uint32) *counter { return &s.chunks[position/chunk][position%chunk] }

// find returns the counter of a key, or nil.
func (s *shard) find(hash uint64, k *Key) *counter {
	if s.n == 0 {
		return nil
	}
	for p := s.heads[uint32(hash)&uint32(len(s.heads)-1)]; p != 0; {
		n := s.at(p - 1)
		if n.key == *k {
			return n
		}
		p = n.next
	}
	return nil
}

// get returns the counter of a key. When there is none it makes one at second.
func (s *shard) get(c *Counters, hash uint64, k *Key, second uint32) *counter {
	if n := s.find(hash, k); n != nil {
		return n
	}
	if int(s.n) == len(s.heads) {
		s.chain(c, max(2*len(s.heads), 8))
	}
	n := s.push()
	n.key, n.last = *k, second
	s.link(c, hash, n, s.n-1)
	return n
}

// push makes room for one more counter.
func (s *shard) push() *counter {
	if int(s.n) == len(s.chunks)*chunk {
		s.chunks = append(s.chunks, new([chunk]counter))
	}
	s.n++
	return s.at(s.n - 1)
}

// link puts the counter at a position into its chains.
func (s *shard) link(c *Counters, hash uint64, n *counter, position uint32) {
	head := &s.heads[uint32(hash)&uint32(len(s.heads)-1)]
	n.next, *head = *head, position+1
	kin := &s.kins[c.groupHash(&n.key)&uint32(len(s.kins)-1)]
	n.kin, *kin = *kin, position+1
}

// chain makes the given number of chains, a power of two, and links every counter anew.
func (s *shard) chain(c *Counters, chains int) {
	s.heads, s.kins = make([]uint32, chains), make([]uint32, chains/4)
	for p := range s.n {
		n := s.at(p)
		s.link(c, c.hash(&n.key), n, p)
	}
}

// members appends the counters of a group that hold something at second.
func (s *shard) members(out []Member, groupHash uint32, group Digest, second uint32) []Member {
	if s.n == 0 {
		return out
	}
	for p := s.kins[groupHash&uint32(len(s.kins)-1)]; p != 0; {
		n := s.at(p - 1)
		if n.key.group() == group {
			if used := n.used(second); used > 0 {
				out = append(out, Member{Member: n.key.member(), Used: used})
			}
		}
		p = n.kin
	}
	return out
}

// sweep removes the counters whose last charge is older than idle. It makes the shard anew from the others.
func (s *shard) sweep(c *Counters, second uint32) int {
	var live uint32
	for p := range s.n {
		n := s.at(p)
		if second > n.last && second-n.last > idle {
			continue
		}
		live++
		if second > n.last {
			n.forget(second)
		}
		if fitting(len(n.older)) < cap(n.older) {
			n.resize(len(n.older))
		}
	}
	gone := int(s.n - live)
	if gone == 0 {
		return 0
	}
	old, count := s.chunks, s.n
	s.chunks, s.n = make([]*[chunk]counter, 0, (live+chunk-1)/chunk), 0
	for p := range count {
		if n := &old[p/chunk][p%chunk]; second <= n.last || second-n.last <= idle {
			*s.push() = *n
		}
	}
	chains := 8
	for chains < int(live) {
		chains *= 2
	}
	s.chain(c, chains)
	return gone
}
