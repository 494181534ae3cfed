package routes

import "github.com/durward-gateway/durward/storage"

// ManagedByFile reports whether an applied file declares an object, for people: nothing is decided on it. So an answer whose
// other parts were read does not fail for it.
func (q *Request) ManagedByFile(kind, id string) bool {
	if q.declared == nil {
		q.declared = make(map[storage.DeclaredObject]bool)
		all, err := q.Core.Store.Declared(q.Context(), q.Organization())
		if err != nil {
			return false
		}
		for _, d := range all {
			q.declared[d] = true
		}
	}
	return q.declared[storage.DeclaredObject{Kind: kind, ID: id}]
}
