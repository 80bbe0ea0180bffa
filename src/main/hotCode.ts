/** When V8 compiles a server's code for speed (L5). */
import { setFlagsFromString } from 'node:v8'

/**
 * V8 of Node 20 compiles a function for speed after it has run this many bytes of bytecode (default 67,584). Most clusters live for a few thousand requests,
 * which cost a fifth less CPU this way (`bench/pair.ts`). Later releases have a compiler in between and no such flag: V8 prints an error for one that it
 * does not know.
 */
export function optimizeEarly(): void {
  if (process.versions.v8.startsWith('11.')) setFlagsFromString('--interrupt-budget=16896')
}
