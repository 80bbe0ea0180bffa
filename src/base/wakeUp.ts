/** A bell for one waiter (L0): rung before, during or after the wait, it is heard once. */
export interface WakeUp {
  ring(): void
  /** Resolves when rung since the last wait, or when the signal aborts. Without a signal, who aborts rings. */
  wait(signal?: AbortSignal): Promise<void>
}

export function createWakeUp(): WakeUp {
  let rung = false
  let waiter: (() => void) | undefined
  return {
    ring: () => {
      rung = true
      waiter?.()
    },
    wait: (signal) =>
      new Promise((resolve) => {
        const done = () => {
          waiter = undefined
          rung = false
          signal?.removeEventListener('abort', done)
          resolve()
        }
        if (rung || signal?.aborted) {
          done()
          return
        }
        waiter = done
        signal?.addEventListener('abort', done, { once: true })
      }),
  }
}
