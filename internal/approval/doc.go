// Package approval holds calls until a human has said yes to exactly that call. It keeps the rules: what an approval is
// bound to, who may decide where, how long a word is good, and that it is good once. Where calls are held and how people
// are asked is the handlers' business.
package approval
