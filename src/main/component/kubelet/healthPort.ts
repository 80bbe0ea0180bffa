/** The kubelet's /healthz on localhost, for the program that supervises the process (L5). Upstream: the healthz server of cmd/kubelet/app/server.go (v1.36). */
import { once } from 'node:events'
import http from 'node:http'
import type { Component } from '#base/component'

/** @param fault what is wrong now; undefined: nothing */
export function createHealthPort(address: string, port: number, fault: () => string | undefined): Component {
  return {
    name: 'healthz',
    async run(signal) {
      const server = http.createServer((request, response) => {
        const path = request.url?.split('?')[0] ?? ''
        const wrong = path === '/healthz' || path === '/healthz/syncloop' ? fault() : undefined
        response.statusCode = !/^\/healthz(\/(ping|log|syncloop))?\/?$/.test(path) ? 404 : wrong === undefined ? 200 : 500
        response.setHeader('Content-Type', 'text/plain; charset=utf-8')
        response.end(response.statusCode === 404 ? '404 page not found\n' : wrong === undefined ? 'ok' : `[-]syncloop failed: ${wrong}\nhealthz check failed\n`)
      })
      server.listen(port, address)
      await once(server, 'listening')
      if (!signal.aborted) await once(signal, 'abort')
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
