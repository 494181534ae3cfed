package platformapi

import (
	"crypto/rand"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/storage"
)

// suffixes is the number of random suffixes that are tried for an automatic slug. Each has 32 bits.
const suffixes = 3

// withFreeSlug stores an object under a slug: the chosen one, or one made of its name, with a suffix when that is
// reserved or when store reports that it is taken.
func withFreeSlug(chosen, name string, store func(slug string) error) error {
	if chosen != "" {
		return store(chosen)
	}
	base := slug.FromName(name)
	candidate := base
	for try := 0; ; try++ {
		err := storage.ErrConflict
		if !slug.Reserved(candidate) {
			if err = store(candidate); conflictingField(err) != "slug" {
				return err
			}
		}
		if try == suffixes {
			return err
		}
		if candidate, err = slug.WithSuffix(base, rand.Reader); err != nil {
			return err
		}
	}
}
