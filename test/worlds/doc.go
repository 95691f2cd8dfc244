// Package worlds is the simulation, tier A (design.md section 13): thousands of
// small worlds, each drawn from a seed, in which the engine's own steps and
// chores and control's own intents run over in-memory ports and a discrete
// clock, while machines, GitLab, clouds, people and the controller itself
// misbehave.
//
// A world keeps a ledger of what really happened: which job was ended by whom,
// what was deleted while its runner ran. The judge goes by that ledger and never
// by the engine's word. The same plan always gives the same story; a plan that
// fails is shrunk to a short one.
//
// It must not know how the engine works: only what it promises.
package worlds
