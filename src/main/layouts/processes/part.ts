/**
 * Keeps a part of a local cluster in a process of its own (L5): starts it, starts it again when it ends, asks it to read the
 * cluster's description again, and asks for the usage of its nodes. It ends with the server, which holds the other end of its standard input. partProcess.ts is the process.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Component } from '#base/component'
import type { ProcessStatus } from '#cli/clusterManager'
import type { ResourceSample } from '#kubelet/server/stats/resourceSample'
import { serverFlags } from '../../localCluster/serverFlags.ts'
import { writeDown } from '../../supervisor/supervisorTools.ts'
import type { ProcessTools } from '../processTools.ts'
import { superviseProcess } from '../superviseProcess.ts'
import type { PartPlace } from './layout.ts'
import type { LookRequest, MeterAnswer, MeterRequest } from './partMessages.ts'

export interface PartOptions {
  /** The word that makes this program the part. */
  readonly word: string
  readonly role: Extract<ProcessStatus['role'], 'controllers' | 'simulated-nodes'>
  readonly tools: ProcessTools
}

export interface Part {
  readonly component: Component
  /** The cluster's description or certificates may have changed. */
  look(): void
  /** Measures a node of the part; undefined while the part does not run. */
  measure(node: string): Promise<ResourceSample> | undefined
}

const graceMs = 10_000
/** A part whose event loop is busy answers late. */
const answerWithinMs = 10_000

export function createPart({ word, role, tools }: PartOptions, { self, paths, name, verbosity, processes }: PartPlace): Part {
  let child: ChildProcess | undefined
  let meter: ReturnType<typeof createMeter> | undefined
  const [node = '', ...entry] = self
  const words = [...serverFlags(), ...entry, 'part', word, '--cluster-dir', paths.dir, '--name', name, '--v', String(verbosity)]
  const start = async (): Promise<ChildProcess> => {
    const started = spawn(node, words, { stdio: ['pipe', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' })
    await once(started, 'spawn')
    child = started
    meter = createMeter(started, tools)
    return started
  }
  const component: Component = {
    name: role,
    run: (signal) =>
      superviseProcess(
        {
          start,
          onMissing: () => {},
          onStarted: ({ pid = 0 }) => processes.set(role, { role, pid }),
          onEnded: async (ended, stopped) => {
            child = undefined
            meter?.close()
            await processes.set(role, undefined)
            // It writes into the server's log.
            if (!stopped) await writeDown({ ...tools, paths }, role, ended, paths.server(name).log)
          },
          end: (running, ended) => end(running, ended, tools),
        },
        tools,
        signal,
      ),
  }
  return {
    component,
    look: () => {
      const request: LookRequest = { look: true }
      if (child?.connected) child.send(request, () => {})
    },
    measure: (of) => (child?.connected ? meter?.ask(of) : undefined),
  }
}

/** Asks it to end; kills it when that takes too long. */
async function end(child: ChildProcess, ended: Promise<unknown>, { clock }: Pick<ProcessTools, 'clock'>): Promise<void> {
  child.kill('SIGTERM')
  const late = clock.timer(graceMs, () => child.kill('SIGKILL'))
  await ended
  late.cancel()
}

/** Questions about usage, and their answers, by number. */
function createMeter(child: ChildProcess, { clock }: Pick<ProcessTools, 'clock'>) {
  const waiting = new Map<number, (answer: Omit<MeterAnswer, 'id'>) => void>()
  let lastId = 0
  child.on('message', (message) => {
    const { id, ...answer } = message as MeterAnswer
    waiting.get(id)?.(answer)
  })
  return {
    ask: (node: string): Promise<ResourceSample> =>
      new Promise((resolve, reject) => {
        const request: MeterRequest = { id: ++lastId, node }
        const settle = ({ sample, error = 'the process of the simulated nodes has no such node' }: Omit<MeterAnswer, 'id'>) => {
          waiting.delete(request.id)
          timer.cancel()
          if (sample) resolve(sample)
          else reject(new Error(error))
        }
        const timer = clock.timer(answerWithinMs, () => settle({ error: `the process of the simulated nodes did not answer within ${answerWithinMs} ms` }))
        waiting.set(request.id, settle)
        child.send(request, (error) => {
          if (error) settle({ error: error.message })
        })
      }),
    close: () => {
      for (const settle of [...waiting.values()]) settle({ error: 'the process of the simulated nodes has ended' })
    },
  }
}
