/** The flags of scheduled backups (L4), read and checked. A place is a directory, or a bucket of a store with S3's API. Pure. */
import path from 'node:path'
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { CommandError } from './exitCodes.ts'

/** What the user asked for. Undefined: as it was. */
export interface BackupOptions {
  /** Five fields of cron, in UTC; `off` ends the backups. */
  readonly schedule?: string | undefined
  /** An absolute path, or an s3:// URL. */
  readonly place?: string | undefined
  /** Number of backups that are kept. */
  readonly keep?: number | undefined
  /** A file with keys for the bucket, as AWS's programs read it; an absolute path. */
  readonly credentials?: string | undefined
}

export interface BackupFlags {
  readonly backupSchedule?: string
  readonly backupDir?: string
  readonly backupKeep?: string
  readonly backupCredentials?: string
}

export interface Bucket {
  /** Without a path, such as `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string
  readonly name: string
  /** What keys begin with: empty, or `a/b/`. */
  readonly prefix: string
  readonly region: string
  /** Section of the file with credentials. */
  readonly profile: string
}

export const noSchedule = 'off'
export const mostBackups = 10_000

/** @throws CommandError usage */
export function backupOptions({ backupSchedule: schedule, backupDir, backupKeep, backupCredentials }: BackupFlags): BackupOptions | undefined {
  if ([schedule, backupDir, backupKeep, backupCredentials].every((flag) => flag === undefined)) return undefined
  if (schedule !== undefined && schedule !== noSchedule) {
    const parsed = parseCronSchedule(schedule)
    if ('fault' in parsed) throw new CommandError('usage', `--backup-schedule ${schedule}: ${parsed.fault}`, { hint: "such as '0 */6 * * *', or off" })
  }
  const keep = Number(backupKeep)
  if (backupKeep !== undefined && (!/^\d+$/.test(backupKeep) || keep < 1 || keep > mostBackups))
    throw new CommandError('usage', `--backup-keep ${backupKeep}: expected a whole number from 1 to ${mostBackups}`)
  return {
    schedule,
    // The server runs in another folder than the user.
    place: backupDir === undefined || bucketOf(backupDir) ? backupDir : path.resolve(backupDir),
    keep: backupKeep === undefined ? undefined : keep,
    credentials: backupCredentials === undefined ? undefined : path.resolve(backupCredentials),
  }
}

/** Undefined: the place is a directory. @throws CommandError usage */
export function bucketOf(place: string): Bucket | undefined {
  if (!place.startsWith('s3://')) return undefined
  const refuse = (reason: string) => new CommandError('usage', `--backup-dir ${place}: ${reason}`, { hint: 'such as s3://BUCKET/PREFIX?region=eu-central-1' })
  const [, name = '', folder = '', query = ''] = /^s3:\/\/([^/?#]*)\/?([^?#]*)\??([^#]*)$/.exec(place) ?? []
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) throw refuse('the bucket has no valid name')
  if (!/^[A-Za-z0-9._/-]*$/.test(folder) || folder.split('/').some((part) => part === '.' || part === '..'))
    throw refuse('the prefix may have letters, digits, and the characters . _ - /')
  const parameters = new URLSearchParams(query)
  for (const key of parameters.keys()) if (!['endpoint', 'region', 'profile'].includes(key)) throw refuse(`unknown parameter "${key}"`)
  const region = parameters.get('region') ?? 'us-east-1'
  const given = parameters.get('endpoint') ?? `https://s3.${region}.amazonaws.com`
  const endpoint = URL.canParse(given) ? new URL(given) : undefined
  if (!endpoint || endpoint.origin === 'null' || endpoint.pathname !== '/' || endpoint.search !== '' || endpoint.username !== '')
    throw refuse('the endpoint is no URL of a host, such as https://HOST:PORT')
  const isLocal = ['127.0.0.1', '[::1]', 'localhost'].includes(endpoint.hostname)
  if (endpoint.protocol !== 'https:' && !(endpoint.protocol === 'http:' && isLocal))
    throw refuse('a backup holds the Secrets of the cluster: the endpoint needs https')
  const prefix = folder.replace(/\/+/g, '/').replace(/^\/|\/$/g, '')
  return { endpoint: endpoint.origin, name, prefix: prefix === '' ? '' : `${prefix}/`, region, profile: parameters.get('profile') ?? 'default' }
}
