// Package queue wakes the engine: it is the only room that knows River.
//
// A job of the queue is only the reason to look at an operation, a chore or a
// webhook delivery; the truth is the store's row. All of the queue's tables may
// be emptied: the sweep fills them again. No type of River leaves this package,
// and nothing here decides where an operation goes (design.md section 9).
package queue
