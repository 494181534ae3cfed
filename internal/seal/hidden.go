package seal

// hidden gives a key, or what was prepared of one. fmt prints functions as addresses with every verb; a pointer it follows
// where the verb does not fit.
type hidden[T any] func() T

func hide[T any](v T) hidden[T] { return func() T { return v } }
