/** Takes a bundle of a cluster (L4): what its server answers to this user, and for a local cluster the logs of its processes and facts of the host. */
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import { parseTime } from '#base/time'
import { skiffVersion } from '#base/version'
import type { HttpTransport } from '#client/httpTransport'
import { completePart } from '#host/partFile'
import type { CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { openOutput } from '../outputFile.ts'
import { revisionsOf } from '../past/connection.ts'
import { BundleWriter } from './bundleWriter.ts'
import { collectLogs } from './collectLogs.ts'
import { type CollectedObjects, collectObjects, learnNewestSecrets } from './collectObjects.ts'
import { type BundleFacts, type MissingPart, metricsPart, storePart, timesPart, tracesPart } from './format.ts'
import { createRedactor, keepsAll, type Redactor } from './redaction/redactor.ts'

export interface BundleOptions {
  readonly transport: HttpTransport
  /** The name that the bundle bears. */
  readonly cluster: string
  /** The local cluster, whose logs and status are taken too. */
  readonly local: string | undefined
  readonly isStopped: boolean
  readonly historyMs: number | undefined
  readonly withSecrets: boolean
}

export interface WrittenBundle extends BundleFacts {
  readonly bytes: number
}

const mostLogBytes = 4 * 2 ** 20
const mostLogSources = 200
/** Each time, the oldest revision was compacted while the objects were read. */
const attempts = 3

export async function writeBundle(context: CommandContext, options: BundleOptions, output: string): Promise<WrittenBundle> {
  const file = await openOutput(output)
  context.ifInterrupted(`${output} is as it was; ${file.part} can be removed`)
  return completePart(file, async (handle) => {
    const writer = new BundleWriter(context.local.directory())
    const taking: Taking = { context, options, writer, redactor: options.withSecrets ? keepsAll : createRedactor(), missing: [] }
    const takenMs = context.clock.now()
    const state = await takeObjects(taking, takenMs)
    await takeTimes(taking, state)
    if (options.isStopped) taking.missing.push({ what: 'traces, metrics and logs of containers', reason: 'the cluster is stopped' })
    else {
      await takeAnswers(taking)
      await takeLogs(taking)
    }
    await takeLocalFacts(taking)
    const { missing, ...counts } = state
    const facts: BundleFacts = {
      ...{ cluster: options.cluster, takenMs, isRedacted: !options.withSecrets, skiffVersion, ...counts },
      serverVersion: await serverVersion(options.transport),
      missing: [...missing, ...taking.missing],
    }
    return { ...facts, bytes: await writer.finish(handle, facts) }
  })
}

interface Taking {
  readonly context: CommandContext
  readonly options: BundleOptions
  readonly writer: BundleWriter
  readonly redactor: Redactor
  readonly missing: MissingPart[]
}

async function takeObjects({ context, options, writer, redactor }: Taking, nowMs: number): Promise<CollectedObjects> {
  for (let attempt = 1; ; attempt++) {
    await using objects = await context.bundles.objectFile(context.local.directory())
    try {
      const state = await collectObjects({ ...options, redactor, nowMs }, objects)
      const database = await objects.end(state)
      await writer.addFile(storePart, database)
      await fs.rm(database)
      return state
    } catch (error) {
      if (!isStatus(error, 'Expired') || attempt === attempts) throw error
    }
  }
}

const mostTimes = 500

/** When revisions were made, for the slider: as many as the server answers at once, evenly spread. */
async function takeTimes({ options: { transport }, writer }: Taking, { oldestRevision, revision }: CollectedObjects): Promise<void> {
  const step = Math.max(1, (revision - oldestRevision) / (mostTimes - 1))
  const wanted = new Set<number>([revision])
  for (let at = oldestRevision; at < revision && wanted.size < mostTimes; at += step) wanted.add(Math.floor(at))
  const times = await revisionsOf(transport, { revisions: [...wanted].join(',') }).then(
    (found) => found.times ?? {},
    () => ({}),
  )
  const marks = Object.entries(times).flatMap(([at, time]) => (time === null ? [] : [{ revision: Number(at), atMs: parseTime(time) ?? 0 }]))
  await writer.add(timesPart, JSON.stringify(marks.toSorted((one, other) => one.revision - other.revision)))
}

/** Answers of the server that are no objects, by part. */
const answers: readonly (readonly [part: string, path: string, query?: Readonly<Record<string, string>>])[] = [
  [tracesPart, '/skiff/traces', { all: '1' }],
  [metricsPart, '/metrics'],
  ['facts/version.json', '/version'],
  ['facts/flags.txt', '/flagz'],
  ['facts/ready.txt', '/readyz', { verbose: '' }],
]

async function takeAnswers({ options: { transport }, writer, redactor, missing }: Taking): Promise<void> {
  await learnNewestSecrets(transport, redactor)
  for (const [part, path, query = {}] of answers) {
    try {
      const { body } = await transport.request({ method: 'GET', path, query, ...(part.endsWith('.txt') ? { accept: 'text/plain' } : {}) })
      await writer.add(part, typeof body === 'string' ? redactor.text(body) : JSON.stringify(redactor.value(body), null, 1))
    } catch (error) {
      if (!isStatus(error)) throw error
      missing.push({ what: part, reason: error.message })
    }
  }
}

async function takeLogs({ context: { clock }, options: { transport }, writer, redactor, missing }: Taking): Promise<void> {
  missing.push(...(await collectLogs({ transport, clock }, (part, text) => writer.add(part, redactor.text(text)))))
}

/** Only a local cluster has its logs and facts on this host. */
async function takeLocalFacts({ context, options: { local }, writer, redactor, missing }: Taking): Promise<void> {
  if (local === undefined) {
    missing.push({ what: 'logs of the server and of the nodes', reason: 'the cluster is not of this host' })
    return
  }
  const { examine } = await import('../commands/doctor.ts')
  await writer.add('facts/doctor.json', JSON.stringify(redactor.value(await examine(context)), null, 1))
  await writer.add('facts/status.json', JSON.stringify(redactor.value(await context.clusters.status(local)), null, 1))
  const sources = await context.clusters.logFiles(local)
  for (const { source, files } of sources.slice(0, mostLogSources)) {
    const [newest] = files
    if (newest !== undefined) await writer.add(`logs/skiff/${source}.log`, redactor.text(await endOf(newest)))
  }
  if (sources.length > mostLogSources)
    missing.push({ what: `logs of ${sources.length - mostLogSources} processes`, reason: `at most ${mostLogSources} logs are taken` })
}

/** From the beginning of a line. */
async function endOf(file: string): Promise<string> {
  const { size } = await fs.stat(file)
  const start = Math.max(0, size - mostLogBytes)
  const parts: Buffer[] = []
  for await (const part of createReadStream(file, { start, end: start + mostLogBytes })) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString()
  return start === 0 ? text : text.slice(text.indexOf('\n') + 1)
}

async function serverVersion(transport: HttpTransport): Promise<string> {
  const { body } = await transport.request({ method: 'GET', path: '/version' }).catch((error: unknown) => {
    if (isStatus(error)) return { body: {} }
    throw new CommandError('unmetPrerequisite', `the cluster does not answer: ${messageOf(error)}`, { cause: error })
  })
  return (body as { gitVersion?: string }).gitVersion ?? 'unknown'
}
