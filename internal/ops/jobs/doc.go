// Package jobs runs work that takes longer than a request. A job is a record in the store, so it survives a restart and the
// death of a node: whoever runs it holds a lease, and extends it while the work goes on. When the lease ends, another node
// begins the job anew. Nothing that a job does may do harm when it is done twice.
//
// An organization has few jobs at a time, and each node runs few of all organizations.
package jobs
