// Package engine is the policy engine. It decides who may call which tool, with which arguments, through which agent. It
// also decides which calls a human confirms first. It is pure: it takes policies and returns decisions. It stores
// nothing and sends nothing.
//
// [Check] lists all mistakes in a policy's rules, for the API. [Compile] turns the policies of one server into an
// immutable [Set], once. [Set.Decide] judges a call, and [Set.View] tells which items a list may show. All of it is
// safe for concurrent use.
//
// # Evaluation
//
// The default is to deny. If an active policy names the caller's agent, it alone decides. Otherwise the server's active
// policy that names no agent decides. Inside a policy the order of rules never matters: any matching deny wins; else a
// matching grant with the suffix :approve asks; else a matching plain grant allows; else the call is denied. A rule
// matches when it is active and its actions, its roles and groups and its condition match. A condition that cannot be
// evaluated (a missing argument, a wrong type, a limit that is reached) matches in a deny and does not match in a
// grant.
//
// In lists the arguments are unknown, and conditions are evaluated in three values. An item is hidden exactly when it
// is denied for all possible arguments. One evaluator answers for calls and lists: a deny counts when it is sure to
// match, a grant when it can match. For a call everything is known, so both mean the same as matching.
//
// # Conditions
//
// Expressions are CEL with the extensions for strings, sets, lists and math. They see:
//
//	request.action            the call as a rule writes it: "tools/call:create_issue", "sse/stream"
//	request.resource.kind     the server's slug
//	request.resource.id       the server's id
//	request.resource.attr     the arguments; {"uri": ...} of a resource; the filters of a stream
//	request.principal.id      the user's id
//	request.principal.roles   sorted, as are groups
//	request.principal.groups
//	request.principal.agent   the registered agent's id, or ""
//	request.principal.attr    the token's claims except those of the protocol itself
//
// R is request.resource, P is request.principal. Everything below request has its type when it is evaluated, not
// before.
//
// An integer in the range of int64 is an int, any other number a double. Some numbers have no double that holds them as
// they were written. Such a number makes each expression impossible to evaluate that could look at its argument (for a
// number in claims: at any claim). This holds even where the rest of the expression would decide without it. An
// expression that names its arguments, as in request.resource.attr.x, looks at those. An expression that uses the
// arguments in any other way looks at all of them.
//
// A name in the arguments has the same effect if a reader who folds case could take it for a name that the expression
// looks at.
//
// An expression has a cost limit. Each function costs as much as the size of its arguments. Functions whose work is a
// product of such sizes are checked before they run. A time limit covers all expressions that are not bounded by their
// own length: they end a quarter of a second after the first of them began. All items of a list share a second.
// Reaching a limit makes the expression impossible to evaluate.
package engine
