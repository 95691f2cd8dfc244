// Package access says who a caller is: here by bearer tokens, of which the
// configuration holds only hashes. It must not know what a caller may do with
// which fleet, nor HTTP routes.
package access
