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
// is denied whatever the arguments.
package rules
