/** Runs a case over both transports of the client: in process and over HTTP/2. */
import test, { type TestContext } from 'node:test'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import { createHttpTransport } from '#client/httpTransport'
import { startTestApiServer, type TestApiServer, type TestApiServerOptions } from '#testing/apiServer'
import { realClock } from '#testing/realClock'

export interface Case {
  readonly client: Client
  readonly api: TestApiServer
  /** A namespace of this case alone. */
  readonly namespace: string
  readonly t: TestContext
}

/** One server for all cases of a file; each case gets a namespace. */
export function bothTransports(cases: Readonly<Record<string, (one: Case) => Promise<void>>>, options: TestApiServerOptions = {}): void {
  for (const [name, run] of Object.entries(cases)) {
    for (const transport of ['in process', 'over HTTP/2'] as const) {
      test(`${name} (${transport})`, async (t) => {
        const api = await startTestApiServer(options)
        const http = transport === 'over HTTP/2' ? await httpClient(api) : undefined
        try {
          const client = http?.client ?? api.client
          const namespace = 'case'
          await client.transport.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } })
          await run({ client, api, namespace, t })
        } finally {
          await http?.close()
          await api.close()
        }
      })
    }
  }
}

export async function httpClient(api: TestApiServer): Promise<{ client: Client; close(): Promise<void> }> {
  const { url, ca, token } = await api.listen()
  const transport = createHttpTransport({ server: url, tls: { ca }, bearerToken: token, clock: realClock, userAgent: 'test' })
  return { client: createClient(transport), close: () => transport.close() }
}
