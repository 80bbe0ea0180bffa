/**
 * Connects to pods and services of a local cluster (L5) through one process in the cluster's network namespace: keeps it running, sends it requests, and takes
 * the connections that it hands over. A request that a process did not answer before it ended goes to the next one.
 */
import type { ChildProcess } from 'node:child_process'
import type { Socket } from 'node:net'
import { type Dialer, UnreachableAddress } from '#apiserver/backends/reach'
import type { Component } from '#base/component'
import { createDialCounter } from './dialCounter.ts'
import { type DialAnswer, type DialCancel, type DialError, type DialRequest, dialTimeoutMs, maxDials, timeoutMessage } from './dialMessages.ts'
import { endInNamespace, startInNamespace } from './namespaceProcess.ts'
import type { ProcessList } from './processList.ts'
import type { ProcessTools } from './processTools.ts'
import { superviseProcess } from './superviseProcess.ts'

export interface ClusterDialerOptions {
  readonly namespace: string
  /** Words that run this program. */
  readonly self: readonly string[]
  readonly tools: ProcessTools
  readonly processes: ProcessList
}

export interface ClusterDialer {
  readonly dial: Dialer
  /** Runs the process. Before and between its runs, dials wait. */
  readonly component: Component
}

interface Dial {
  readonly request: DialRequest
  end(error: Error | undefined, socket?: Socket): void
}

export function createClusterDialer({ namespace, self, tools, processes }: ClusterDialerOptions): ClusterDialer {
  const dials = new Map<number, Dial>()
  const counter = createDialCounter(maxDials)
  let child: ChildProcess | undefined
  let lastId = 0
  const send = (message: DialRequest | DialCancel) => {
    // The process may have just ended: then its successor gets the requests of all dials that wait.
    if (child?.connected) child.send(message, () => {})
  }
  const onAnswer = ({ id, error }: DialAnswer, socket: Socket | undefined) => {
    const dial = dials.get(id)
    if (!dial) socket?.destroy()
    else if (error) dial.end(errorOf(error))
    else if (socket) dial.end(undefined, socket)
    else dial.end(Object.assign(new Error('the connection was reset'), { code: 'ECONNRESET' }))
  }
  const dial: Dialer = (address, port, signal, user) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted()
      counter.add(address, user)
      const request = { id: ++lastId, address, port }
      const end: Dial['end'] = (error, socket) => {
        dials.delete(request.id)
        counter.remove(address, user)
        timer.cancel()
        signal?.removeEventListener('abort', onAbort)
        if (socket) resolve(socket)
        else reject(error)
      }
      const giveUp = (error: Error) => {
        end(error)
        send({ cancel: request.id })
      }
      const onAbort = () => giveUp(signal?.reason as Error)
      const timer = tools.clock.timer(dialTimeoutMs, () => giveUp(new Error(timeoutMessage(request))))
      signal?.addEventListener('abort', onAbort, { once: true })
      dials.set(request.id, { request, end })
      send(request)
    })
  const take = (started: ChildProcess) => {
    child = started
    started.on('message', (answer, socket) => onAnswer(answer as DialAnswer, socket as Socket | undefined))
    for (const { request } of dials.values()) send(request)
  }
  const component: Component = {
    name: 'cluster dialer',
    run: (signal) =>
      superviseProcess(
        {
          start: async () => {
            const started = await startInNamespace(namespace, self, ['dialer'])
            if (started) take(started)
            return started
          },
          onMissing: () => tools.log.warn('The network namespace of the cluster is missing', { namespace }),
          onStarted: ({ pid = 0 }) => processes.set('dialer', { role: 'dialer', pid }),
          onEnded: async ({ exitCode, signalCode }, stopped) => {
            child = undefined
            if (!stopped) tools.log.warn('The cluster dialer ended, starting it again', { code: exitCode, signal: signalCode })
            await processes.set('dialer', undefined)
          },
          end: (running, ended) => endInNamespace(running, ended, tools),
        },
        tools,
        signal,
      ),
  }
  return { dial, component }
}

function errorOf({ code, message, isRefusal }: DialError): Error {
  if (isRefusal) return new UnreachableAddress(message)
  return Object.assign(new Error(message), code === undefined ? {} : { code })
}
