package evaluator

import "github.com/durward-gateway/durward/internal/policy/engine"

// Judged is the verdict of the policies on one message, or on the opening of a stream of /sse.
type Judged struct {
	Call     engine.Call
	Decision engine.Decision
}
