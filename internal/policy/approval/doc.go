// Package approval holds calls until a human has said yes to exactly that call. It keeps the rules: the facts that an
// approval is bound to, the people and channels that may decide, the time that a decision is good for, and that it is
// good once. The handlers decide where calls are held and how people are asked.
package approval
