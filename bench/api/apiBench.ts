/** What the loads on the API have in common. */
import type { ScenarioContext } from '../scenario.ts'
import type { LoadClient } from '../tools/load.ts'

export interface ApiBench {
  readonly client: LoadClient
  readonly serverPid: number
  readonly inFlight: number
  readonly context: ScenarioContext
  /** The resourceVersion of the object that each worker updates. */
  readonly versions: string[]
}

/** A namespace in which pods can be made. */
export async function prepareNamespace(client: LoadClient, name: string): Promise<void> {
  await client.ask('POST', '/api/v1/namespaces', { metadata: { name } })
  const deadline = performance.now() + 5000
  for (;;) {
    const found = await client.ask('GET', `/api/v1/namespaces/${name}/serviceaccounts/default`).catch(() => undefined)
    if (found) return
    if (performance.now() > deadline) throw new Error(`namespace ${name} gets no service account`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
