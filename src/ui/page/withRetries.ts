/** Reads that outlast a change of the host's network (L4). */
const pauseMs = 300
const mostAttempts = 4

/** Browsers break all connections when the host's network changes, those to the host itself included: reading again is safe. */
export async function withRetries(ask: () => Promise<Response>, signal?: AbortSignal): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (attempt === mostAttempts || signal?.aborted) throw error
      await new Promise((resolve) => setTimeout(resolve, attempt * pauseMs))
    }
  }
}
