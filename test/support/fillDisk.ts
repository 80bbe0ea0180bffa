/** Leaves no room on the disk of a file (tests only). */
import fs from 'node:fs'

const mebibyte = 2 ** 20

/** Writes to the file until there is no byte left. */
export function fillDisk(file: string): void {
  const descriptor = fs.openSync(file, 'a')
  try {
    for (let size = mebibyte; size >= 1; ) {
      try {
        fs.writeSync(descriptor, Buffer.alloc(size))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        size = Math.floor(size / 2)
      }
    }
  } finally {
    fs.closeSync(descriptor)
  }
}
