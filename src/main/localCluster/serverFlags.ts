/** How Node runs the server of a local cluster (L5); the benchmarks measure whole clusters in processes that run the same way. */

/** A larger nursery: under load a server's garbage is collected a third as often, for a third less time (creates, 50,000 of them). */
export const serverFlags = ['--max-semi-space-size=32'] as const
