export { main } from './program.ts';
export { processTerminal, type Terminal } from './terminal.ts';
