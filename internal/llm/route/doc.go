// Package route decides the order in which the targets of an alias are tried, and which providers are paused because
// they fail. It makes no calls itself.
package route
