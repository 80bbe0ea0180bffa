/** HTTP and TCP requests from the node's network (L3), as probes and hooks make them: no redirects to other hosts, any certificate. Upstream: kubelet/probe/http (v1.36). */
import { type IncomingMessage, request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import { connect as tlsConnect } from 'node:tls'
import type { KubeletHost } from '../host.ts'

export interface HttpTarget {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly https: boolean
  readonly headers: readonly { readonly name: string; readonly value: string }[]
}

export interface HttpResponse {
  readonly status: number
  readonly body: string
}

const maxBodyBytes = 10 * 1024

/** GETs the target over a connection of the node. Redirects on the same host are followed, ten at most. */
export async function httpRequest(host: Pick<KubeletHost, 'dial'>, target: HttpTarget, signal: AbortSignal, redirects = 10): Promise<HttpResponse> {
  const socket = await host.dial(target.host, target.port, signal)
  // What goes wrong is the request's to tell; a later error of the abandoned connection is nobody's.
  socket.on('error', () => {})
  try {
    const response = await send(socket, target, signal)
    const location = response.headers.location
    const status = response.statusCode ?? 0
    const body = await readBody(response)
    if (status < 300 || status >= 400 || !location || redirects === 0) return { status, body }
    const from = new URL(`${target.https ? 'https' : 'http'}://${target.host}:${target.port}${target.path}`)
    const to = new URL(location, from)
    // A redirect away from the container counts as an answer, so that nobody is probed by proxy.
    if (to.hostname !== from.hostname) return { status, body }
    const https = to.protocol === 'https:'
    return await httpRequest(host, { ...target, port: Number(to.port || (https ? 443 : 80)), path: `${to.pathname}${to.search}`, https }, signal, redirects - 1)
  } finally {
    socket.destroy()
  }
}

function send(socket: Duplex, target: HttpTarget, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers: Record<string, string | string[]> = { 'User-Agent': 'kube-probe/1.36', Accept: '*/*', Connection: 'close' }
    for (const { name, value } of target.headers) {
      if (value === '' && (name === 'Accept' || name === 'User-Agent')) delete headers[name]
      else headers[name] = value
    }
    // With an agent, even `false`, createConnection would be ignored.
    const options = { method: 'GET', host: target.host, port: target.port, path: target.path, headers, signal }
    const request = target.https
      ? tlsRequest({ ...options, createConnection: () => tlsConnect({ socket, rejectUnauthorized: false }) })
      : plainRequest({ ...options, createConnection: () => socket })
    request.once('error', reject)
    request.once('response', resolve)
    request.end()
  })
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= maxBodyBytes) break
  }
  return Buffer.concat(chunks).subarray(0, maxBodyBytes).toString()
}
