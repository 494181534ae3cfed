// Package llmroute decides in which order the targets of an alias are tried, and which providers are left alone for a while
// because they fail. It calls nobody.
package llmroute
