/**
 * Backups in a bucket of a store with S3's API (L5). A backup is written to a file first, because its length and SHA-256 are sent before it, and sent in one
 * request, which S3 takes up to 5 GiB. The bucket is part of the path, which every such store understands.
 */
import { createReadStream } from 'node:fs'
import { open, readFile, rm } from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import { pipeline } from 'node:stream/promises'
import { AwsV4Signer } from 'aws4fetch'
import { printable } from '#base/printable'
import { formatTime } from '#base/time'
import type { Bucket } from '#cli/backupOptions'
import { digestOf } from '#store/snapshot/snapshotFile'
import { credentialsOf } from './awsCredentials.ts'
import { type BackupPlace, trailerOf } from './backupPlace.ts'

interface BucketOptions {
  /** A file, read for each request: what renews its keys needs no restart. */
  readonly credentials: string | undefined
  /** Taken by a backup until it is sent. */
  readonly scratch: string
  readonly now: () => number
}

interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** The first part of it. */
  readonly text: string
}

interface Body {
  readonly file: string
  readonly bytes: number
}

/** A connection on which nothing moves for this long is given up. */
const idleMs = 60_000
const mostTextBytes = 4096
/** What a bucket takes in one request. */
const mostBytes = 5 * 2 ** 30
const snapshotHeader = 'x-amz-meta-snapshot-sha256'
const emptyDigest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export function createBucketPlace(bucket: Bucket, { credentials, scratch, now }: BucketOptions): BackupPlace {
  const urlOf = (name: string) => `${bucket.endpoint}/${bucket.name}/${bucket.prefix}${name}`
  const ask = async (method: string, name: string, signal: AbortSignal, sent: Readonly<Record<string, string>> = {}, body?: Body) => {
    if (credentials === undefined) throw new Error('no file with credentials: --backup-credentials names one')
    const keys = credentialsOf(await readFile(credentials, 'utf8'), bucket.profile)
    if (!keys) throw new Error(`${credentials} has no keys for the profile "${bucket.profile}"`)
    const datetime = formatTime(now()).replace(/[-:]/g, '')
    const headers = { 'x-amz-content-sha256': emptyDigest, ...sent }
    const signed = await new AwsV4Signer({ method, url: urlOf(name), headers, ...keys, service: 's3', region: bucket.region, datetime }).sign()
    const length: Record<string, string> = body ? { 'content-length': String(body.bytes) } : {}
    return request(method, signed.url, { ...Object.fromEntries(signed.headers), ...length }, signal, body)
  }
  return {
    async add(name, save, signal) {
      try {
        await save(scratch)
        const saved = await trailerOf(scratch)
        if (!saved) throw new Error(`${scratch} is not what was saved`)
        if (saved.bytes > mostBytes) throw new Error(`the backup has ${saved.bytes} bytes, and a bucket takes ${mostBytes} in one request`)
        const headers = { 'x-amz-content-sha256': await digestOfFile(scratch, saved.bytes), [snapshotHeader]: saved.sha256 }
        expectSuccess(await ask('PUT', name, signal, headers, { file: scratch, bytes: saved.bytes }), 'PUT', urlOf(name))
        return saved
      } finally {
        await rm(scratch, { force: true })
      }
    },
    async digestOf(name, signal) {
      const answer = await ask('HEAD', name, signal)
      if (answer.status === 404) return undefined
      expectSuccess(answer, 'HEAD', urlOf(name))
      return String(answer.headers[snapshotHeader] ?? '')
    },
    async remove(name, signal) {
      expectSuccess(await ask('DELETE', name, signal), 'DELETE', urlOf(name))
    },
  }
}

async function digestOfFile(file: string, bytes: number): Promise<string> {
  const handle = await open(file, 'r')
  return digestOf(handle, bytes)
    .then((digest) => digest.toString('hex'))
    .finally(() => handle.close())
}

function expectSuccess({ status, text }: Answer, method: string, url: string): void {
  if (status >= 200 && status < 300) return
  const [code, message] = ['Code', 'Message'].map((name) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1])
  const reason = [code, message].filter((part) => part !== undefined).join(': ')
  throw new Error(printable(`${method} ${url}: status ${status}${reason === '' ? '' : `, ${reason}`}`))
}

async function request(method: string, url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal, body: Body | undefined): Promise<Answer> {
  const sent = (url.protocol === 'http:' ? http : https).request(url, { method, headers, signal, agent: false })
  sent.setTimeout(idleMs, () => sent.destroy(new Error(`${url.host} does not answer`)))
  const answered = new Promise<Answer>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => answerOf(response).then(resolve, reject))
  })
  // A store that refuses may answer, and close the connection, before everything is sent.
  const written = body ? pipeline(createReadStream(body.file, { end: body.bytes - 1 }), sent).catch(() => {}) : sent.end()
  const answer = await answered
  sent.destroy()
  await written
  return answer
}

async function answerOf(response: http.IncomingMessage): Promise<Answer> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of response as AsyncIterable<Buffer>) {
    if (bytes < mostTextBytes) pieces.push(piece)
    bytes += piece.length
    if (bytes >= mostTextBytes) break
  }
  return { status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(pieces).subarray(0, mostTextBytes).toString() }
}
