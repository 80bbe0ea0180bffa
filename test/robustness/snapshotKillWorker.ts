/**
 * The process that gets killed: saves, restores or defragments, and kills itself before its Nth change to a file below HOME. Ends with 0 when it comes to its end
 * before. Arguments: the operation, HOME, N.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const [operation = '', home = '', steps = '0'] = process.argv.slice(2)
let left = Number(steps)

function step(place: unknown): void {
  if (typeof place !== 'string' || !place.startsWith(home)) return
  if (left-- === 0) process.kill(process.pid, 'SIGKILL')
}

/** Replaces functions of an object by ones that count a change of the file that they are given first. */
function count<Names extends string>(functions: Record<Names, unknown>, names: readonly Names[], placeOf: (self: object, place: unknown) => unknown): void {
  for (const name of names) {
    const original = functions[name] as (...args: unknown[]) => unknown
    const counting = function (this: object, ...args: unknown[]) {
      step(placeOf(this, args[0]))
      return original.apply(this, args)
    }
    functions[name] = counting
  }
}

const places = new WeakMap<object, string>()
const { open } = fs.promises
const probe = await open(process.execPath)
count(Object.getPrototypeOf(probe), ['write', 'sync', 'truncate'], (self) => places.get(self))
await probe.close()
count(fs.promises, ['rename', 'link', 'copyFile', 'rm', 'mkdir'], (_, place) => place)
fs.promises.open = async (...args) => {
  if (args[1] !== 'r') step(args[0])
  const handle = await open(...args)
  places.set(handle, String(args[0]))
  return handle
}
syncBuiltinESMExports()

const { changeCluster } = await import('./snapshotKillOperations.ts')
await changeCluster(operation, home)
process.exit(0)
