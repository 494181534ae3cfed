package app

// Decision is what durward_policy decided about a call, before anything of it left. A call without one is carried
// nowhere.
type Decision struct {
	// Off: the configuration says `durward_policy off`, and nothing was judged.
	Off bool
}
