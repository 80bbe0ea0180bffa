/** What the loads on the API have in common. */
import type { ScenarioContext } from '../scenario.ts'
import { withApiServer } from '../tools/apiServerAlone.ts'
import { createLoadClient, type LoadClient } from '../tools/load.ts'

/** The namespace of the objects that loads make. */
export const namespace = 'bench'

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

/** Requests in flight, unless a load says otherwise. */
const inFlight = 64

export interface AloneOptions extends Pick<ScenarioContext, 'dir' | 'signal'> {
  readonly name: string
  readonly flags?: readonly string[] | undefined
  /** The build. Default: this one. */
  readonly command?: string | undefined
  /** False: the namespace is there. */
  readonly isNew?: boolean | undefined
}

/** An API server alone, with the namespace of the loads. */
export function withApiBench<T>({ dir, signal, name, flags = [], command, isNew = true }: AloneOptions, use: (bench: ApiBench) => Promise<T>): Promise<T> {
  return withApiServer(
    dir,
    name,
    ['--disable-admission-plugins=ServiceAccount', ...flags],
    async ({ serverPid, address }) => {
      const client = await createLoadClient(address)
      try {
        if (isNew) await client.ask('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
        return await use({ client, serverPid, inFlight, context: { dir, signal, progress: () => {} }, versions: [] })
      } finally {
        client.close()
      }
    },
    command,
  )
}
