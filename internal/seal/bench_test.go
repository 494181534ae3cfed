package seal

import "testing"

func BenchmarkSeal(b *testing.B) {
	k := newKeyring(b)
	plain := make([]byte, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Seal(plain, place); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenSeal(b *testing.B) {
	s := newKeyring(b).Sealer("session")
	plain, ad := make([]byte, 100), []byte("ad")
	b.ReportAllocs()
	for b.Loop() {
		if s.Seal(plain, ad) == "" {
			b.Fatal("nothing sealed")
		}
	}
}

func BenchmarkMACSums(b *testing.B) {
	m := newKeyring(b).Digester("bench")
	message := []byte("dw-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM")
	b.ReportAllocs()
	for b.Loop() {
		m.Sums(message)
	}
}
