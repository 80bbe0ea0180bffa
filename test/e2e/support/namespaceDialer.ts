/**
 * Connections out of a network namespace (tests only). Node cannot change its namespace, so a second one that runs in there connects, and hands
 * the connection itself over: nothing stands between the ends that could end before them.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { inNetworkNamespace } from '#host/netns'

const script = `
  const { connect } = require('node:net')
  process.on('message', ({ id, host, port }) => {
    const socket = connect(port, host)
    socket.once('error', (error) => process.send({ id, error: error.message }))
    socket.once('connect', () => process.send({ id }, socket))
  })`

export interface NamespaceDialer {
  dial(host: string, port: number): Promise<Socket>
  close(): Promise<void>
}

export function createNamespaceDialer(namespace: string): NamespaceDialer {
  const [enter = '', ...rest] = inNetworkNamespace(namespace)
  const child = spawn(enter, [...rest, process.execPath, '-e', script], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const waiting = new Map<number, (answer: { error?: string }, socket: Socket) => void>()
  child.on('message', (answer: { id: number; error?: string }, socket) => {
    waiting.get(answer.id)?.(answer, socket as Socket)
    waiting.delete(answer.id)
  })
  let last = 0
  return {
    dial: (host, port) =>
      new Promise((resolve, reject) => {
        const id = ++last
        waiting.set(id, ({ error }, socket) => (error === undefined ? resolve(socket) : reject(new Error(error))))
        child.send({ id, host, port })
      }),
    close: async () => {
      const exited = once(child, 'exit')
      child.kill()
      await exited
    },
  }
}
