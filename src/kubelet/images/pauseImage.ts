/**
 * The image of the process that holds a pod's namespaces (L3): an ELF of under 200 bytes for amd64 or arm64, written here byte by byte, so that no pod needs a registry.
 * It ignores SIGCHLD, so that as PID 1 of a shared process namespace the kernel reaps its orphans, and then pauses without an end.
 */
import { arch } from 'node:os'
import { bareMap } from '#base/bareMap'
import { goArchitecture } from '../core/host.ts'
import { ociTar } from './ociTar.ts'

/** What an architecture needs: its number in the ELF header, the largest page its kernels may use, and the program. */
interface Machine {
  readonly elfMachine: number
  readonly pageBytes: number
  readonly code: Buffer
}

/** rt_sigaction(SIGCHLD, {SIG_IGN, no flags, no restorer, no mask}, NULL, 8), then pause() in a loop; arm64 knows no pause, but ppoll() of nothing. */
const machines: Readonly<Record<string, Machine>> = bareMap({
  amd64: {
    elfMachine: 62,
    pageBytes: 0x1000,
    code: fromHex([
      '6a00 6a00 6a00 6a01', // push 0 (mask, restorer, flags), push SIG_IGN
      '4889e6', // mov rsi, rsp
      '6a115f', // rdi = SIGCHLD
      '31d2', // rdx = NULL
      '6a08415a', // r10 = sizeof(sigset)
      '6a0d58 0f05', // rt_sigaction
      '6a2258 0f05', // pause
      'ebf9', // again
    ]),
  },
  arm64: {
    elfMachine: 183,
    pageBytes: 0x10000,
    code: fromHex([
      'ff7fbfa9', // push 0 (restorer, mask)
      '210080d2 e17fbfa9', // push SIG_IGN, 0 (flags)
      '200280d2', // x0 = SIGCHLD
      'e1030091', // x1 = sp
      'e2031faa', // x2 = NULL
      '030180d2', // x3 = sizeof(sigset)
      'c81080d2 010000d4', // rt_sigaction
      'e0031faa e1031faa e2031faa e3031faa', // x0, x1, x2, x3 = no files, none, no end, no mask
      '280980d2 010000d4', // ppoll
      'faffff17', // again
    ]),
  },
})

function fromHex(lines: readonly string[]): Buffer {
  return Buffer.from(lines.join('').replaceAll(' ', ''), 'hex')
}

const loadAddress = 0x400000
const headerBytes = 64 + 56

/** The executable. @throws Error on an architecture for which there is none. */
export function pauseExecutable(architecture: string = arch()): Buffer {
  const machine = machines[goArchitecture(architecture)]
  if (!machine) throw new Error(`no pause executable for ${architecture}: set another sandbox image`)
  const { elfMachine, pageBytes, code } = machine
  const elf = Buffer.alloc(headerBytes)
  elf.write('\x7fELF\x02\x01\x01', 0, 'latin1')
  elf.writeUInt16LE(2, 16) // an executable
  elf.writeUInt16LE(elfMachine, 18)
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
  elf.writeBigUInt64LE(BigInt(headerBytes + code.length), 96)
  elf.writeBigUInt64LE(BigInt(headerBytes + code.length), 104)
  elf.writeBigUInt64LE(BigInt(pageBytes), 112)
  return Buffer.concat([elf, code])
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
