// Package metering keeps the books of the LLM gateway: what calls used, what that cost, and whether a budget still has
// room for the next one.
//
// A call is priced ([Prices]), its estimated cost is set aside in every budget that applies to it ([Meter.Reserve]), and
// what it came to is written down once ([Hold.Settle], [Hold.Release]). A call belongs to the hour, day and
// month in which it was reserved, however long it runs.
//
// What is written down is added up in memory and brought to the store in numbered batches, each exactly once. The store
// being away delays that, and nothing else.
package metering
