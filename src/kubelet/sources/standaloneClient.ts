/**
 * The client of a kubelet that has no API server (L3): nothing is there, nothing ever comes, and nothing can be written. What runs are static pods, which
 * may name nothing of the API. Upstream: standalone mode, cmd/kubelet/app/server.go (v1.36), where the client is nil.
 */
import { StatusError } from '#api/machinery/status'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'

export function standaloneClient(): Client {
  return createClient({
    request: async ({ method, path, query }) => {
      // Lists are told from objects by what only they are asked with.
      if (method === 'GET' && query && 'limit' in query) return { status: 200, body: { metadata: {}, items: [] }, warnings: [] }
      if (method === 'GET') throw new StatusError('NotFound', `there is no API server that could have ${path}`)
      throw new StatusError('ServiceUnavailable', 'there is no API server')
    },
    watch: async function* (_request, signal) {
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve(), { once: true })
      })
      yield []
    },
  })
}
