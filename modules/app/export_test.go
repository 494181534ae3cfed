package app

// Pooled is the number of resources that outlive configurations and are held now.
func Pooled() int {
	n := 0
	pool.Range(func(_, _ any) bool {
		n++
		return true
	})
	return n
}
