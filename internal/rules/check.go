package rules

import "github.com/durward-gateway/durward/storage"

// Problem is one thing that is wrong with a policy's rules.
type Problem struct {
	Loc     []any  // below "body": "rules", 2, "actions", 0
	Message string // for the one who wrote the rule
	Type    string // a word of the contract's list for 422 answers
	Input   any    // what is wrong; nil: left out
	// Line and Column are where in an expression, from 1, in characters; 0 when the problem is not inside one.
	Line, Column int
}

// Check says everything that is wrong with a policy's rules; nil when nothing is.
func Check(rules []storage.Rule) []Problem { return nil }
