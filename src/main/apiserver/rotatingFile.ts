/**
 * A log file that is renamed when it has grown (L5), from `audit.log` to `audit-2026-01-02T03-04-05.678.log`; old files are removed by age and
 * number, and may be compressed. Only the owner can read them. Upstream: natefinch/lumberjack.
 */

import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { LineWriter } from '#apiserver/audit/logBackend'
import type { Clock } from '#base/clock'
import { parseTime } from '#base/time'
import { makeDirectorySync } from '#host/files'

export interface RotatingFileOptions {
  /** 0: it is never moved aside. */
  readonly maxBytes: number
  /** Days; 0: old files are not removed by age. */
  readonly maxAgeDays: number
  /** 0: as many as there are. */
  readonly maxBackups: number
  readonly compress: boolean
  /** Writing waits for the operating system; else it returns a promise. */
  readonly blocking: boolean
}

export interface Backup {
  readonly file: string
  readonly atMs: number
  readonly compressed: boolean
}

const dayMs = 86_400_000
const ownerOnly = 0o600
const newline = 0x0a
const deskBytes = 256 * 1024
/** Of most characters, what UTF-8 takes at most. */
const bytesOfCharacter = 3
const fileWrite = promisify(fs.write) as (fd: number, bytes: Uint8Array, at: number) => Promise<{ bytesWritten: number }>
const compressed = promisify(gzip)

/** @throws Error when the file cannot be opened */
export function openRotatingFile(file: string, options: RotatingFileOptions, clock: Clock): LineWriter {
  makeDirectorySync(path.dirname(file), 0o700)
  let fd = fs.openSync(file, 'a', ownerOnly)
  let size = fs.fstatSync(fd).size
  let cleaning: Promise<void> = Promise.resolve()
  const rotate = () => {
    fs.closeSync(fd)
    fs.renameSync(file, backupName(file, clock.now()))
    fd = fs.openSync(file, 'a', ownerOnly)
    size = 0
    cleaning = cleaning.then(() => cleanUp(file, options, clock)).catch(() => undefined)
  }
  const { maxBytes, blocking } = options
  /** Where text becomes bytes: a buffer for each turn's lines would cost as much as writing them. */
  const desk = Buffer.allocUnsafe(blocking ? deskBytes : 0)
  /** The next part of the lines that goes into one file: it ends with the last line that has room in it. */
  const nextPart = (bytes: Buffer, from: number): Buffer => {
    let to = endOfLines(bytes, from, (maxBytes || Number.POSITIVE_INFINITY) - size)
    if (to === from) {
      const lineBytes = (bytes.indexOf(newline, from) + 1 || bytes.length) - from
      if (lineBytes > maxBytes) throw new Error(`write length ${lineBytes} exceeds maximum file size ${maxBytes}`)
      rotate()
      to = endOfLines(bytes, from, maxBytes)
    }
    size += to - from
    return bytes.subarray(from, to)
  }
  const writeLater = async (bytes: Buffer) => {
    for (let from = 0; from < bytes.length; ) {
      const part = nextPart(bytes, from)
      for (let at = 0; at < part.length; ) at += (await fileWrite(fd, part, at)).bytesWritten
      from += part.length
    }
  }
  return {
    mostLineBytes: maxBytes > 0 ? maxBytes : undefined,
    write(text) {
      if (!blocking) return writeLater(Buffer.from(text))
      const bytes = text.length * bytesOfCharacter <= desk.length ? desk.subarray(0, desk.write(text)) : Buffer.from(text)
      for (let from = 0; from < bytes.length; ) {
        const part = nextPart(bytes, from)
        // A file may take less than it is given, as when the disk is nearly full: the next try says why.
        for (let at = 0; at < part.length; ) at += fs.writeSync(fd, part, at)
        from += part.length
      }
    },
    async close() {
      await cleaning
      fs.closeSync(fd)
    },
  }
}

/** Where the lines end that have room; `from`: none has. */
function endOfLines(bytes: Buffer, from: number, room: number): number {
  if (bytes.length - from <= room) return bytes.length
  return room <= 0 ? from : Math.max(from, bytes.lastIndexOf(newline, from + room - 1) + 1)
}

/** What a file is called that is moved aside. */
export function backupName(file: string, nowMs: number): string {
  const { dir, name, ext } = path.parse(file)
  const time = new Date(nowMs).toISOString().slice(0, -1).replaceAll(':', '-')
  return path.join(dir, `${name}-${time}${ext}`)
}

/** Removes the files moved aside that are too old or too many, and compresses the others. */
export async function cleanUp(
  file: string,
  { maxAgeDays, maxBackups, compress }: Pick<RotatingFileOptions, 'maxAgeDays' | 'maxBackups' | 'compress'>,
  clock: Clock,
): Promise<void> {
  const backups = await backupsOf(file)
  const oldestMs = maxAgeDays > 0 ? clock.now() - maxAgeDays * dayMs : Number.NEGATIVE_INFINITY
  const kept = (maxBackups > 0 ? backups.slice(0, maxBackups) : backups).filter(({ atMs }) => atMs >= oldestMs)
  for (const backup of backups) if (!kept.includes(backup)) await fs.promises.rm(backup.file, { force: true })
  if (!compress) return
  for (const backup of kept) {
    if (backup.compressed) continue
    await fs.promises.writeFile(`${backup.file}.gz`, await compressed(await fs.promises.readFile(backup.file)), { mode: ownerOnly })
    await fs.promises.rm(backup.file, { force: true })
  }
}

/** The files moved aside, the newest first. */
export async function backupsOf(file: string): Promise<Backup[]> {
  const { dir, name, ext } = path.parse(file)
  const found: Backup[] = []
  for (const one of await fs.promises.readdir(dir || '.')) {
    const isCompressed = one.endsWith(`${ext}.gz`)
    if (!one.startsWith(`${name}-`) || !(isCompressed || one.endsWith(ext))) continue
    const time = one.slice(name.length + 1, one.length - ext.length - (isCompressed ? '.gz'.length : 0))
    const match = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2}\.\d{3})$/.exec(time)
    const atMs = match && parseTime(`${match[1]}T${match[2]}:${match[3]}:${match[4]}Z`)
    if (typeof atMs === 'number') found.push({ file: path.join(dir, one), atMs, compressed: isCompressed })
  }
  return found.sort((a, b) => b.atMs - a.atMs)
}

/** Standard output, which is not ours to close. */
export function standardOutput(): LineWriter {
  return {
    write(text) {
      fs.writeSync(1, text)
    },
    close: () => Promise.resolve(),
  }
}
