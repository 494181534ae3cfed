package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answers is a resolver that gives its answers in turn, the last one again and again.
type answers struct {
	sets  [][]netip.Addr
	asked atomic.Int32
}

func (a *answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n := int(a.asked.Add(1)) - 1
	return a.sets[min(n, len(a.sets)-1)], nil
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// loopback returns the policy of development mode.
func loopback() Policy {
	p := prefixes("127.0.0.0/8", "::1/128")
	return Policy{Allow: p, HTTP: p}
}

// edges returns the first, a middle and the last address of a range.
func edges(p netip.Prefix) []netip.Addr {
	first := p.Masked().Addr()
	last, middle := first.AsSlice(), first.AsSlice()
	for bit := p.Bits(); bit < first.BitLen(); bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
		if bit%3 == 0 {
			middle[bit/8] |= 1 << (7 - bit%8)
		}
	}
	l, _ := netip.AddrFromSlice(last)
	m, _ := netip.AddrFromSlice(middle)
	return []netip.Addr{first, m, l}
}

// encodings returns the ways in which an IPv4 address has been written to get past filters.
func encodings(a netip.Addr) []string {
	b := a.As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	wide := ""
	for _, c := range a.String() {
		if c == '.' {
			wide += "。"
		} else {
			wide += string(c - '0' + '０')
		}
	}
	return []string{
		a.String(),
		a.String() + ".",
		fmt.Sprint(n),
		fmt.Sprintf("0x%08x", n),
		fmt.Sprintf("0X%X", n),
		fmt.Sprintf("0%o", n),
		fmt.Sprintf("%#x.%#x.%#x.%#x", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%03d.%03d.%03d.%03d", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("%d.%d", b[0], n&0xffffff),
		fmt.Sprintf("%d.%d.%d", b[0], b[1], n&0xffff),
		fmt.Sprintf("%#x.%d", b[0], n&0xffffff),
		fmt.Sprintf("%d.%d.%d.%d", int(b[0])+256, b[1], b[2], b[3]),
		wide,
		fmt.Sprintf("[::ffff:%s]", a),
		fmt.Sprintf("[::ffff:%x:%x]", n>>16, n&0xffff),
		fmt.Sprintf("[0:0:0:0:0:FFFF:%X:%X]", n>>16, n&0xffff),
		fmt.Sprintf("[::%s]", a),
		fmt.Sprintf("[::ffff:0:%s]", a),
		fmt.Sprintf("[64:ff9b::%s]", a),
		fmt.Sprintf("[64:ff9b:1::%s]", a),
		fmt.Sprintf("[2002:%x:%x::1]", n>>16, n&0xffff),
	}
}

// TestEncodings checks several hundred ways to write an inner address. Each is refused when a URL is stored and when
// it is dialled, and none of them is looked up.
func TestEncodings(t *testing.T) {
	resolver := &answers{sets: [][]netip.Addr{addrs("127.0.0.1")}}
	g := New(Policy{}, WithResolver(resolver))
	count := 0
	refused := func(host string) {
		t.Helper()
		count++
		if u, err := url.Parse("https://" + host + "/mcp"); err == nil {
			if err := g.CheckURL(u); !errors.Is(err, ErrRefused) {
				t.Errorf("CheckURL(%s) = %v, want a refusal", u, err)
			}
		}
		_, err := g.DialContext(t.Context(), "tcp", host+":443")
		if !errors.Is(err, ErrRefused) {
			t.Errorf("dialling %s: %v, want a refusal", host, Cause(err))
		} else if err.Error() != publicText {
			t.Errorf("S10 dialling %s: text %q", host, err)
		}
	}
	for _, s := range specialRanges {
		if s.prefix.Addr().Is4In6() {
			continue // judged by the IPv4 address inside; encodings has these forms
		}
		for _, a := range edges(s.prefix) {
			if !a.Is4() {
				refused("[" + a.String() + "]")
				refused("[" + a.StringExpanded() + "]")
				continue
			}
			for _, host := range encodings(a) {
				refused(host)
			}
		}
	}
	for _, host := range []string{
		"0", "0x", "0x0", "00", "127.1", "0177.0.0.1", "2130706433", "0x7f.1", "[::]", "[fe80::1%25eth0]", "[::1%25lo]", "1.2.3.4.5",
		"example.0x7f", "example.1", "[fd00:ec2::254]", "192.0.0.192", "100.100.100.200", "168.63.129.16", "", ".", "..", "a..b", ".a",
		"exa mple.com", "example.com\\@127.0.0.1", "*", "⓵②⑦.0.0.1", "ｌocalhost", "example。com",
	} {
		refused(host)
	}
	if n := resolver.asked.Load(); n != 0 {
		t.Errorf("%d lookups, want none", n)
	}
	if count < 300 {
		t.Errorf("%d encodings, want at least 300", count)
	}
	t.Logf("%d encodings", count)
}

func TestPublicAddressesPass(t *testing.T) {
	g := New(Policy{})
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
		"169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00::1", "2003::1", "3ffe:ffff::1", "::ffff:1.1.1.1",
	} {
		if err := g.checkAddr(netip.MustParseAddr(text), false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPolicy(t *testing.T) {
	for _, tc := range []struct {
		name  string
		p     Policy
		addr  string
		plain bool
		ok    bool
	}{
		{"loopback is opened", loopback(), "127.0.0.1", false, true},
		{"IPv4-mapped loopback too", loopback(), "::ffff:127.0.0.1", false, true},
		{"nothing else private is", loopback(), "10.0.0.1", false, false},
		{"not the unspecified address, which reaches loopback", loopback(), "0.0.0.0", false, false},
		{"http to loopback", loopback(), "::1", true, true},
		{"http to the world stays closed", loopback(), "1.1.1.1", true, false},
		{"http may be opened to a public range", Policy{HTTP: prefixes("1.1.1.0/24")}, "1.1.1.1", true, true},
		{"http opens no private range", Policy{HTTP: prefixes("10.0.0.0/8")}, "10.0.0.1", true, false},
		{"a range in mapped form", Policy{Allow: prefixes("::ffff:10.0.0.0/104")}, "10.1.2.3", false, true},
		{"a prefix with host bits", Policy{Allow: prefixes("10.1.2.3/8")}, "10.9.9.9", false, true},
		{"NAT64 opened: public inside", Policy{Allow: prefixes("64:ff9b::/96")}, "64:ff9b::1.1.1.1", false, true},
		{"NAT64 opened: private inside", Policy{Allow: prefixes("64:ff9b::/96")}, "64:ff9b::10.0.0.1", false, false},
		{"6to4 opened: loopback inside", Policy{Allow: prefixes("2002::/16")}, "2002:7f00:1::", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := New(tc.p).checkAddr(netip.MustParseAddr(tc.addr), tc.plain)
			if (err == nil) != tc.ok {
				t.Errorf("checkAddr(%s) = %v", tc.addr, err)
			}
			if err != nil && !errors.Is(err, ErrRefused) {
				t.Errorf("%v is not ErrRefused", err)
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	public, dev := New(Policy{}), New(loopback())
	for _, tc := range []struct {
		name, url   string
		public, dev bool
	}{
		{"https name", "https://mcp.example.com/mcp?a=b", true, true},
		{"https name with port and trailing dot", "https://mcp.example.com.:8443", true, true},
		{"underscore and dash", "https://a_b-c.example", true, true},
		{"punycode", "https://xn--bcher-kva.example/", true, true},
		{"public address", "https://1.1.1.1/", true, true},
		{"public IPv6 address", "https://[2606:4700::1111]:443/", true, true},
		{"http name is judged at the dial", "http://mcp.example.com/", false, true},
		{"http public address", "http://1.1.1.1/", false, false},
		{"http loopback", "http://127.0.0.1:8080/mcp", false, true},
		{"http localhost", "http://localhost:8080/mcp", false, true},
		{"S02 localhost.", "https://localhost./", false, true},
		{"S02 LOCALHOST", "https://LOCALHOST/", false, true},
		{"S02 sub.localhost", "https://sub.localhost/", false, true},
		{"S01 metadata.google.internal", "https://metadata.google.internal/", false, false},
		{"S01 metadata address", "https://169.254.169.254/latest", false, false},
		{"S06 javascript", "javascript:alert(1)", false, false},
		{"S06 file", "file:///etc/passwd", false, false},
		{"S06 gopher", "gopher://127.0.0.1:6379/_x", false, false},
		{"S06 user information", "https://user:pw@example.com/", false, false},
		{"S06 empty user information", "https://@example.com/", false, false},
		{"fragment", "https://example.com/#x", false, false},
		{"no scheme", "//example.com/", false, false},
		{"no host", "https:///path", false, false},
		{"opaque", "https:example.com", false, false},
		{"empty port", "https://example.com:/", false, false},
		{"port 0", "https://example.com:0/", false, false},
		{"port too large", "https://example.com:65536/", false, false},
		{"shell characters", "https://$(id).example.com/", false, false},
		{"label too long", "https://" + string(make64()) + ".example/", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, err := url.Parse(tc.url)
			if err != nil {
				t.Fatal(err)
			}
			if err := public.CheckURL(u); (err == nil) != tc.public {
				t.Errorf("zero policy: %v", err)
			}
			err = dev.CheckURL(u)
			if (err == nil) != tc.dev {
				t.Errorf("development policy: %v", err)
			}
			if _, ok := errors.AsType[*URLError](err); err != nil && !ok {
				t.Errorf("%T, want *URLError", err)
			}
		})
	}
	if err := public.CheckURL(nil); err == nil {
		t.Error("nil passes")
	}
}

func make64() []byte {
	b := make([]byte, 64)
	for i := range b {
		b[i] = 'a'
	}
	return b
}

// listen serves connections on a loopback address until the test ends, closing each.
func listen(t *testing.T, host string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("listening on %s: %v", host, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

func TestRebinding(t *testing.T) {
	port := listen(t, "127.0.0.1")
	policy := Policy{Allow: prefixes("127.0.0.1/32")}
	for _, tc := range []struct {
		name    string
		sets    [][]netip.Addr
		refused bool
	}{
		{"S04 good, then bad: one lookup, the checked address is dialled", [][]netip.Addr{addrs("127.0.0.1"), addrs("127.0.0.2")}, false},
		{"S04 bad, then good", [][]netip.Addr{addrs("127.0.0.2"), addrs("127.0.0.1")}, true},
		{"S04 mixed set", [][]netip.Addr{addrs("127.0.0.1", "10.0.0.1")}, true},
		{"S04 A good, AAAA bad", [][]netip.Addr{addrs("127.0.0.1", "::1")}, true},
		{"S04 A bad, AAAA mapped good", [][]netip.Addr{addrs("192.168.0.1", "::ffff:127.0.0.1")}, true},
		{"mapped good", [][]netip.Addr{addrs("::ffff:127.0.0.1")}, false},
		{"the ninth address is bad", [][]netip.Addr{append(addrs("127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1",
			"127.0.0.1", "127.0.0.1", "127.0.0.1"), addrs("10.0.0.1")...)}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resolver := &answers{sets: tc.sets}
			g := New(policy, WithResolver(resolver))
			conn, err := g.DialContext(t.Context(), "tcp", "rebind.example:"+port)
			if n := resolver.asked.Load(); n != 1 {
				t.Errorf("%d lookups, want 1", n)
			}
			if tc.refused {
				if !errors.Is(err, ErrRefused) {
					t.Fatalf("got %v, want a refusal", err)
				}
				return
			}
			if err != nil {
				t.Fatal(Cause(err))
			}
			defer conn.Close()
			if got := conn.RemoteAddr().String(); got != "127.0.0.1:"+port {
				t.Errorf("connected to %s", got)
			}
		})
	}
}

func TestControlHook(t *testing.T) {
	port := listen(t, "127.0.0.1")
	ap := netip.MustParseAddrPort("127.0.0.1:" + port)
	if _, err := New(Policy{}).connect(t.Context(), ap, false); !errors.Is(err, ErrRefused) {
		t.Errorf("S04 second wall: %v, want a refusal", err)
	}
	if _, err := New(Policy{Allow: prefixes("127.0.0.0/8")}).connect(t.Context(), ap, true); !errors.Is(err, ErrRefused) {
		t.Errorf("plain http: %v, want a refusal", err)
	}
}

func TestFailuresLookAlike(t *testing.T) {
	closed := listenAndClose(t)
	g := New(loopback(), WithResolver(&answers{sets: [][]netip.Addr{nil}}), WithConnectTimeout(10*time.Second))
	for name, address := range map[string]string{
		"S10 refused":      "10.0.0.1:80",
		"S10 closed":       "127.0.0.1:" + closed,
		"S10 no such name": "nowhere.example:80",
		"S10 malformed":    "nowhere",
	} {
		_, err := g.DialPlain(t.Context(), "tcp", address)
		if err == nil || err.Error() != publicText {
			t.Errorf("%s: %v", name, err)
		}
		if cause := Cause(err); cause == nil || cause.Error() == publicText {
			t.Errorf("%s: the log learns nothing: %v", name, cause)
		}
	}
	_, err := g.DialPlain(t.Context(), "tcp", "127.0.0.1:"+closed)
	if errors.Is(err, ErrRefused) {
		t.Error("a closed port is not a refusal")
	}
}

func listenAndClose(t *testing.T) (port string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	return port
}

func TestSecondAddressIsTried(t *testing.T) {
	port := listen(t, "127.0.0.1")
	g := New(loopback(), WithResolver(&answers{sets: [][]netip.Addr{addrs("127.0.0.9", "127.0.0.1")}}))
	conn, err := g.DialContext(t.Context(), "tcp", "two.example:"+port)
	if err != nil {
		t.Fatal(Cause(err))
	}
	_ = conn.Close()
}

// hanging is a resolver that answers when its caller has gone.
type hanging struct{}

func (hanging) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestConnectTimeout(t *testing.T) {
	g := New(Policy{}, WithResolver(hanging{}), WithConnectTimeout(time.Millisecond))
	_, err := g.DialContext(t.Context(), "tcp", "slow.example:443")
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != publicText {
		t.Errorf("Z-U01 hanging name server: %v", Cause(err))
	}
}

func TestAlternate(t *testing.T) {
	in := []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "1.1.1.1:1"}
	want := []string{"[2001:db8::1]:1", "1.1.1.1:1", "[2001:db8::2]:1", "[2001:db8::3]:1"}
	var ap []netip.AddrPort
	for _, s := range in {
		ap = append(ap, netip.MustParseAddrPort(s))
	}
	for i, a := range alternate(ap) {
		if a.String() != want[i] {
			t.Errorf("position %d: %s, want %s", i, a, want[i])
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://example.com/", "https://127.1/", "http://[::1]:80/", "https://0x7f.1", "https://a@b/", "https://１２７.0.0.1/"} {
		f.Add(s)
	}
	resolver := &answers{sets: [][]netip.Addr{addrs("127.0.0.1")}}
	g := New(Policy{}, WithResolver(resolver))
	f.Fuzz(func(t *testing.T, s string) {
		u, err := url.Parse(s)
		if err != nil || g.CheckURL(u) != nil {
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Fatalf("%q passes", s)
		}
		// A host that passes is a public address or a name, and never something that a C resolver would read as a
		// number.
		if a, err := netip.ParseAddr(u.Hostname()); err == nil {
			if err := g.checkAddr(a, false); err != nil {
				t.Fatalf("%q passes: %v", s, err)
			}
		}
	})
}

func BenchmarkCheckAddr(b *testing.B) {
	g := New(loopback())
	a := netip.MustParseAddr("2606:4700::1111")
	b.ReportAllocs()
	for b.Loop() {
		if err := g.checkAddr(a, false); err != nil {
			b.Fatal(err)
		}
	}
}
