package netguard

import "net/netip"

// special is a range of addresses from which no public server answers, or that embeds other addresses.
type special struct {
	prefix netip.Prefix
	name   string
}

// specialRanges lists the ranges that are refused unless the policy opens them: the IANA IPv4 and IPv6
// special-purpose address registries (RFC 6890 and its updates), multicast, address space that is not allocated, and
// platform addresses of clouds that lie in public space. The predicates of net/netip are not enough: they know a
// third of these.
//
// Order matters only for the name in a refusal: the narrower range stands before the wider one.
var specialRanges = []special{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network (RFC 791)"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private use (RFC 1918)"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared address space (RFC 6598)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback (RFC 1122)"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud platform service"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link local (RFC 3927)"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private use (RFC 1918)"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments (RFC 6890)"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation (RFC 5737)"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112 (RFC 7535)"},
	{netip.MustParsePrefix("192.52.193.0/24"), "AMT (RFC 7450)"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay anycast (RFC 7526)"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private use (RFC 1918)"},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112 (RFC 7534)"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking (RFC 2544)"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation (RFC 5737)"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation (RFC 5737)"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast (RFC 5771)"},
	{netip.MustParsePrefix("255.255.255.255/32"), "limited broadcast (RFC 8190)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved (RFC 1112)"},

	{netip.MustParsePrefix("::/128"), "unspecified (RFC 4291)"},
	{netip.MustParsePrefix("::1/128"), "loopback (RFC 4291)"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible (RFC 4291)"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "IPv4-mapped (RFC 4291)"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated (RFC 7915)"},
	{prefixNAT64, "IPv4-IPv6 translation (RFC 6052)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "IPv4-IPv6 translation (RFC 8215)"},
	{netip.MustParsePrefix("100::/64"), "discard only (RFC 6666)"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "dummy prefix (RFC 9780)"},
	{netip.MustParsePrefix("2001::/32"), "Teredo (RFC 4380)"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments (RFC 2928)"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation (RFC 3849)"},
	{prefix6to4, "6to4 (RFC 3056)"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112 (RFC 7534)"},
	{netip.MustParsePrefix("3fff::/20"), "documentation (RFC 9637)"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing (RFC 9602)"},
	{netip.MustParsePrefix("fc00::/7"), "unique local (RFC 4193)"},
	{netip.MustParsePrefix("fe80::/10"), "link local (RFC 4291)"},
	{netip.MustParsePrefix("fec0::/10"), "site local (RFC 3879)"},
	{netip.MustParsePrefix("ff00::/8"), "multicast (RFC 4291)"},

	// Only 2000::/3 has been allocated as global unicast.
	{netip.MustParsePrefix("::/3"), "not global unicast (RFC 4291)"},
	{netip.MustParsePrefix("4000::/2"), "not global unicast (RFC 4291)"},
	{netip.MustParsePrefix("8000::/1"), "not global unicast (RFC 4291)"},
}

// Ranges that carry an IPv4 address. Opening one must not open the IPv4 addresses inside it.
var (
	prefixNAT64 = netip.MustParsePrefix("64:ff9b::/96")
	prefix6to4  = netip.MustParsePrefix("2002::/16")
)

// embedded returns the IPv4 address to which a translator or relay would forward traffic to a.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case prefixNAT64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case prefix6to4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// specialName names the special range in which a lies.
func specialName(a netip.Addr) (string, bool) {
	for _, s := range specialRanges {
		if s.prefix.Contains(a) {
			return s.name, true
		}
	}
	return "", false
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// normalize masks prefixes and writes IPv4-mapped ones as IPv4, the form in which addresses are compared.
func normalize(prefixes []netip.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(prefixes))
	for _, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		out = append(out, p.Masked())
	}
	return out
}
