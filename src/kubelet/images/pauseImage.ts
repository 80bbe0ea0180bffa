/**
 * The image of the process that holds a pod's namespaces (L3): an ELF of 152 bytes, written here byte by byte, so that no pod needs a registry.
 * It ignores SIGCHLD, so that as PID 1 of a shared process namespace its orphans vanish by themselves, and then pauses for ever.
 */
import { arch } from 'node:os'
import { goArchitecture } from '../host.ts'
import { ociTar } from './ociTar.ts'

/** x86-64: rt_sigaction(SIGCHLD, {SIG_IGN}, NULL, 8), then pause() in a loop. */
const amd64Code = Buffer.from(
  [
    '6a00 6a00 6a00 6a01', // push 0 (mask, restorer, flags), push SIG_IGN
    '4889e6', // mov rsi, rsp
    '6a115f', // rdi = SIGCHLD
    '31d2', // rdx = NULL
    '6a08415a', // r10 = sizeof(sigset)
    '6a0d58 0f05', // rt_sigaction
    '6a2258 0f05', // pause
    'ebf9', // again
  ]
    .join('')
    .replaceAll(' ', ''),
  'hex',
)

const loadAddress = 0x400000
const headerBytes = 64 + 56

/** The executable. @throws Error on an architecture for which there is none. */
export function pauseExecutable(architecture: string = arch()): Buffer {
  if (goArchitecture(architecture) !== 'amd64') throw new Error(`no pause executable for ${architecture}: set another sandbox image`)
  const elf = Buffer.alloc(headerBytes)
  elf.write('\x7fELF\x02\x01\x01', 0, 'latin1')
  elf.writeUInt16LE(2, 16) // an executable
  elf.writeUInt16LE(62, 18) // x86-64
  elf.writeUInt32LE(1, 20)
  elf.writeBigUInt64LE(BigInt(loadAddress + headerBytes), 24) // entry
  elf.writeBigUInt64LE(64n, 32) // program headers
  elf.writeUInt16LE(64, 52)
  elf.writeUInt16LE(56, 54)
  elf.writeUInt16LE(1, 56)
  elf.writeUInt32LE(1, 64) // PT_LOAD
  elf.writeUInt32LE(5, 68) // readable, executable
  elf.writeBigUInt64LE(BigInt(loadAddress), 80)
  elf.writeBigUInt64LE(BigInt(loadAddress), 88)
  elf.writeBigUInt64LE(BigInt(headerBytes + amd64Code.length), 96)
  elf.writeBigUInt64LE(BigInt(headerBytes + amd64Code.length), 104)
  elf.writeBigUInt64LE(0x1000n, 112)
  return Buffer.concat([elf, amd64Code])
}

/** The image as an OCI tar under the given name; the process is not root. */
export function pauseImage(name: string, architecture: string = arch()): Buffer {
  return ociTar({
    names: [name],
    entrypoint: ['/pause'],
    user: '65535:65535',
    architecture: goArchitecture(architecture),
    files: [{ path: 'pause', type: 'file', mode: 0o755, data: pauseExecutable(architecture) }],
  })
}
