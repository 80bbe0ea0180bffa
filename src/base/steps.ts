/** Work in passes (L0), each of which takes its time over a large object: between two passes the caller may do other work. */
export type Steps<T> = Generator<undefined, T>

/** Runs all the passes at once. */
export function finished<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}
