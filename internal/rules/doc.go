// Package rules is the policy engine: who may call which tool, with which arguments, through which agent, and which
// calls a human confirms first. It is pure: policies go in, decisions come out, nothing is stored, nothing is sent.
//
// [Check] says everything that is wrong with a policy's rules, for the API. [Compile] turns the policies of one server
// into an immutable [Set], once; [Set.Decide] judges a call, [Set.View] what a list may show. All of it is safe for
// concurrent use.
//
// # Evaluation
//
// The default is to deny. If an active policy names the caller's agent, it alone decides, else the server's active
// policy that names no agent. Inside a policy the order of rules never matters: any matching deny wins; else a matching
// grant with the suffix :approve asks; else a matching plain grant allows; else the call is denied. A rule matches when
// it is active and its actions, its roles and groups and its condition do. A condition that cannot be evaluated (a
// missing argument, a wrong type, a limit that is met) matches in a deny and does not match in a grant.
//
// In lists the arguments are not known, and conditions are evaluated in three values: an item is hidden exactly when it
// is denied whatever the arguments. One evaluator says both: a deny counts when it matches for sure, a grant when it can
// match; of a call, of which everything is known, that is the same as matching.
//
// # Conditions
//
// Expressions are CEL with the extensions for strings, sets, lists and math, and see:
//
//	request.action            the call as a rule writes it: "tools/call:create_issue", "sse/stream"
//	request.resource.kind     the server's slug
//	request.resource.id       the server's id
//	request.resource.attr     the arguments; {"uri": ...} of a resource; the filters of a stream
//	request.principal.id      the user's id
//	request.principal.roles   sorted, as are groups
//	request.principal.groups
//	request.principal.agent   the registered agent's id, or ""
//	request.principal.attr    the token's claims but for the protocol's own
//
// R is request.resource, P is request.principal. Everything below request has its type when it is evaluated, not before.
//
// An integer in the range of int64 is an int, any other number a double. A number that no double holds as it was written
// makes each expression unevaluable that could look at the argument it is in (for numbers in claims: at any claim), also
// where the rest of the expression would decide without it. An expression that names its arguments, as in
// request.resource.attr.x, looks at those; one that uses the arguments in any other way looks at all of them.
//
// So does a name in the arguments that a reader who folds case could take for one that the expression looks at.
//
// An expression has a limit of cost, to which a function counts for as much as it is given to look at; functions whose
// work is a product of that are judged before they run; and all that is not bounded by its own length ends a quarter of a
// second after the first of it began. All items of a list share a second. A limit that is met makes the expression unevaluable.
package rules
