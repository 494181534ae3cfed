package seal

// hidden returns a key, or a value prepared from one. fmt prints functions as addresses with every verb, but follows
// a pointer where the verb does not fit.
type hidden[T any] func() T

func hide[T any](v T) hidden[T] { return func() T { return v } }
