/** The process of ./cannedServer.ts: an HTTPS server that gives the answers its parent has set, and records the requests. */
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { CannedAnswer, FromServer, Received, ToServer } from './cannedServer.ts'

const send = (message: FromServer) => process.send?.(message)
let answers: Readonly<Record<string, CannedAnswer>> = {}
let received: Received[] = []

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request) text += part
  return text
}

function serve(tls: { readonly cert: string; readonly key: string }): void {
  const server = createServer(tls, async (request, response) => {
    const body = await bodyOf(request)
    const path = request.url ?? ''
    received.push({ method: request.method ?? '', path, headers: request.headers, body })
    const token = /"token":"([^"]*)"/.exec(body)?.[1]
    const { status = 200, headers = {}, text = '', delayMs = 0 } = answers[`${path} ${token}`] ?? answers[path] ?? { status: 404 }
    setTimeout(() => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text), delayMs)
  })
  server.listen(0, '127.0.0.1', () => send({ type: 'listening', port: (server.address() as AddressInfo).port }))
}

process.on('message', (message: ToServer) => {
  if (message.type === 'serve') serve(message.tls)
  else if (message.type === 'answers') {
    answers = message.answers
    send({ type: 'answers' })
  } else {
    send({ type: 'received', received })
    received = []
  }
})
process.on('disconnect', () => process.exit())
