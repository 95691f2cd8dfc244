// Package access says who a caller is, and what a pipeline may ask for: bearer
// tokens of which the configuration holds only hashes, id_tokens that GitLab
// signs for jobs, and the tokens that follow the operations of one request. It
// owns the claim policies, the limits on callers and the reasons for which
// somebody is refused. It must not know HTTP routes, nor what an operation
// does. docs/access.md is the page for users, docs/threats.md what it is
// against.
package access
