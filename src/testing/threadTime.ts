/** The time that the main thread has spent on a processor (tests only): neither other processes count nor threads that collect garbage and compile. */
import fs from 'node:fs'

/** The first number of the file: nanoseconds on a processor. */
const file = `/proc/self/task/${process.pid}/schedstat`
const buffer = Buffer.alloc(128)
let descriptor: number | undefined

/** In milliseconds. Where the system does not tell a thread's time, that of the process. */
export function threadMs(): number {
  if (process.platform !== 'linux') {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  descriptor ??= fs.openSync(file, 'r')
  const length = fs.readSync(descriptor, buffer, 0, buffer.length, 0)
  return Number(buffer.toString('latin1', 0, length).split(' ', 1)[0]) / 1e6
}
