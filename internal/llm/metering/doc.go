// Package metering keeps the books of the LLM gateway: the usage of calls, its cost, and whether a budget still has
// room for the next call.
//
// A call is priced ([Prices]). Its estimated cost is reserved in every budget that applies to it ([Meter.Reserve]). Its
// real usage is recorded once ([Hold.Settle], [Hold.Release]). A call belongs to the hour, day and month in which it
// was reserved, however long it runs.
//
// Recorded usage is added up in memory and sent to the store in numbered batches, each exactly once. When the store is
// away, that is only delayed.
package metering
