"""Names of system calls by number: written by tools/make_syscall_numbers.py, from the kernel's headers for programs."""

from __future__ import annotations

# Where a table's numbers begin.
FIRST = {"mips_o32": 4000, "mips_n64": 5000, "mips_n32": 6000}

# "0: read write 5: fstat": of each table the calls that only its machines have; "shared": those that all have.
NUMBERS = {
    "shared": """
    424: pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig
    fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2
    mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret
    process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait
    futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat
    listxattrat removexattrat open_tree_attr file_getattr file_setattr listns rseq_slice_yield
    """,
    "x86_64": """
    0: read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
    rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise
    shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile socket connect accept
    sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt
    clone fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock
    fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink
    readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage sysinfo times ptrace getuid
    syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups
    setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending
    rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs
    sysfs getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall vhangup
    modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount2
    swapon swapoff reboot sethostname setdomainname iopl ioperm create_module init_module delete_module
    get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall tuxcall security gettid readahead
    setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr
    fremovexattr tkill time futex sched_setaffinity sched_getaffinity set_thread_area io_setup io_destroy io_getevents
    io_submit io_cancel get_thread_area lookup_dcookie epoll_create epoll_ctl_old epoll_wait_old remap_file_pages
    getdents64 set_tid_address restart_syscall semtimedop fadvise64 timer_create timer_settime timer_gettime
    timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait
    epoll_ctl tgkill utimes vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive
    mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get inotify_init
    inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat unlinkat
    renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list
    splice tee sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd fallocate
    timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev
    rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at
    open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv process_vm_writev kcmp finit_module
    sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat userfaultfd
    membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq
    uretprobe uprobe
    """,
    "i386": """
    0: restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time mknod chmod lchown
    break oldstat lseek getpid mount umount setuid getuid stime ptrace alarm oldfstat pause utime stty gtty access
    nice ftime sync kill rename mkdir rmdir dup pipe times prof brk setgid getgid signal geteuid getegid acct umount2
    lock ioctl fcntl mpx setpgid ulimit oldolduname umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask
    ssetmask setreuid setregid sigsuspend sigpending sethostname setrlimit getrlimit getrusage gettimeofday
    settimeofday getgroups setgroups select symlink oldlstat readlink uselib swapon reboot readdir mmap munmap
    truncate ftruncate fchmod fchown getpriority setpriority profil statfs fstatfs ioperm socketcall syslog setitimer
    getitimer stat lstat fstat olduname iopl vhangup idle vm86old wait4 swapoff sysinfo ipc fsync sigreturn clone
    setdomainname uname modify_ldt adjtimex mprotect sigprocmask create_module init_module delete_module
    get_kernel_syms quotactl getpgid fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents
    _newselect flock msync readv writev getsid fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam
    sched_getparam sched_setscheduler sched_getscheduler sched_yield sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval nanosleep mremap setresuid getresuid vm86 query_module poll nfsservctl setresgid getresgid
    prctl rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64
    pwrite64 chown getcwd capget capset sigaltstack sendfile getpmsg putpmsg vfork ugetrlimit mmap2 truncate64
    ftruncate64 stat64 lstat64 fstat64 lchown32 getuid32 getgid32 geteuid32 getegid32 setreuid32 setregid32
    getgroups32 setgroups32 fchown32 setresuid32 getresuid32 setresgid32 getresgid32 chown32 setuid32 setgid32
    setfsuid32 setfsgid32 pivot_root mincore madvise getdents64 fcntl64 224: gettid readahead setxattr lsetxattr
    fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill
    sendfile64 futex sched_setaffinity sched_getaffinity set_thread_area get_thread_area io_setup io_destroy
    io_getevents io_submit io_cancel fadvise64 252: exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait
    remap_file_pages set_tid_address timer_create timer_settime timer_gettime timer_getoverrun timer_delete
    clock_settime clock_gettime clock_getres clock_nanosleep statfs64 fstatfs64 tgkill utimes fadvise64_64 vserver
    mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    kexec_load waitid 286: add_key request_key keyctl ioprio_set ioprio_get inotify_init inotify_add_watch
    inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat fstatat64 unlinkat renameat linkat
    symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice
    sync_file_range tee vmsplice move_pages getcpu epoll_pwait utimensat signalfd timerfd_create eventfd fallocate
    timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev
    rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at
    open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv process_vm_writev kcmp finit_module
    sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat socket socketpair bind connect
    listen accept4 getsockopt setsockopt getsockname getpeername sendto sendmsg recvfrom recvmsg shutdown userfaultfd
    membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx arch_prctl
    io_pgetevents rseq 393: semget semctl shmget shmctl shmat shmdt msgget msgsnd msgrcv msgctl clock_gettime64
    clock_settime64 clock_adjtime64 clock_getres_time64 clock_nanosleep_time64 timer_gettime64 timer_settime64
    timerfd_gettime64 timerfd_settime64 utimensat_time64 pselect6_time64 ppoll_time64 416: io_pgetevents_time64
    recvmmsg_time64 mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 futex_time64
    sched_rr_get_interval_time64
    """,
    "generic": """
    0: io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
    listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr getcwd lookup_dcookie eventfd2 epoll_create1
    epoll_ctl epoll_pwait dup dup3 fcntl inotify_init1 inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get
    flock mknodat mkdirat unlinkat symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs fstatfs
    truncate ftruncate fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat fchown openat close vhangup
    pipe2 quotactl getdents64 lseek read write readv writev pread64 pwrite64 preadv pwritev sendfile pselect6 ppoll
    signalfd4 vmsplice splice tee readlinkat newfstatat fstat sync fsync fdatasync sync_file_range timerfd_create
    timerfd_settime timerfd_gettime utimensat acct capget capset personality exit exit_group waitid set_tid_address
    unshare futex set_robust_list get_robust_list nanosleep getitimer setitimer kexec_load init_module delete_module
    timer_create timer_gettime timer_getoverrun timer_settime timer_delete clock_settime clock_gettime clock_getres
    clock_nanosleep syslog ptrace sched_setparam sched_setscheduler sched_getscheduler sched_getparam
    sched_setaffinity sched_getaffinity sched_yield sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack rt_sigsuspend rt_sigaction rt_sigprocmask
    rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigreturn setpriority getpriority reboot setregid setgid setreuid
    setuid setresuid getresuid setresgid getresgid setfsuid setfsgid times setpgid getpgid getsid setsid getgroups
    setgroups uname sethostname setdomainname getrlimit setrlimit getrusage umask prctl getcpu gettimeofday
    settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd semget semctl semtimedop semop shmget shmctl
    shmat shmdt socket socketpair bind listen accept connect getsockname getpeername sendto recvfrom setsockopt
    getsockopt shutdown sendmsg recvmsg readahead brk munmap mremap add_key request_key keyctl clone execve mmap
    fadvise64 swapon swapoff mprotect msync mlock munlock mlockall munlockall mincore madvise remap_file_pages mbind
    get_mempolicy set_mempolicy migrate_pages move_pages rt_tgsigqueueinfo perf_event_open accept4 recvmmsg 260: wait4
    prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at clock_adjtime syncfs setns sendmmsg
    process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom
    memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
    pkey_free statx io_pgetevents rseq kexec_file_load
    """,
    "riscv": """
    258: riscv_hwprobe riscv_flush_icache
    """,
    "arm": """
    0: restart_syscall exit fork read write open close 8: creat link unlink execve chdir 14: mknod chmod lchown 19:
    lseek getpid mount 23: setuid getuid 26: ptrace 29: pause 33: access nice 36: sync kill rename mkdir rmdir dup
    pipe times 45: brk setgid getgid 49: geteuid getegid acct umount2 54: ioctl fcntl 57: setpgid 60: umask chroot
    ustat dup2 getppid getpgrp setsid sigaction 70: setreuid setregid sigsuspend sigpending sethostname setrlimit 77:
    getrusage gettimeofday settimeofday getgroups setgroups 83: symlink 85: readlink uselib swapon reboot 91: munmap
    truncate ftruncate fchmod fchown getpriority setpriority 99: statfs fstatfs 103: syslog setitimer getitimer stat
    lstat fstat 111: vhangup 114: wait4 swapoff sysinfo 118: fsync sigreturn clone setdomainname uname 124: adjtimex
    mprotect sigprocmask 128: init_module delete_module 131: quotactl getpgid fchdir bdflush sysfs personality 138:
    setfsuid setfsgid _llseek getdents _newselect flock msync readv writev getsid fdatasync _sysctl mlock munlock
    mlockall munlockall sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_yield
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval nanosleep mremap setresuid getresuid 168: poll
    nfsservctl setresgid getresgid prctl rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait
    rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 chown getcwd capget capset sigaltstack sendfile 190: vfork
    ugetrlimit mmap2 truncate64 ftruncate64 stat64 lstat64 fstat64 lchown32 getuid32 getgid32 geteuid32 getegid32
    setreuid32 setregid32 getgroups32 setgroups32 fchown32 setresuid32 getresuid32 setresgid32 getresgid32 chown32
    setuid32 setgid32 setfsuid32 setfsgid32 getdents64 pivot_root mincore madvise fcntl64 224: gettid readahead
    setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr
    fremovexattr tkill sendfile64 futex sched_setaffinity sched_getaffinity io_setup io_destroy io_getevents io_submit
    io_cancel exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait remap_file_pages 256: set_tid_address
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres
    clock_nanosleep statfs64 fstatfs64 tgkill utimes arm_fadvise64_64 pciconfig_iobase pciconfig_read pciconfig_write
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr waitid socket bind connect listen accept
    getsockname getpeername socketpair send sendto recv recvfrom shutdown setsockopt getsockopt sendmsg recvmsg semop
    semget semctl msgsnd msgrcv msgget msgctl shmat shmdt shmget shmctl add_key request_key keyctl semtimedop vserver
    ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch mbind get_mempolicy set_mempolicy openat
    mkdirat mknodat fchownat futimesat fstatat64 unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat
    pselect6 ppoll unshare set_robust_list get_robust_list splice arm_sync_file_range tee vmsplice move_pages getcpu
    epoll_pwait kexec_load utimensat signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime
    signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open
    recvmmsg accept4 fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs
    sendmmsg setns process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp
    getrandom memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect
    pkey_alloc pkey_free statx rseq io_pgetevents migrate_pages kexec_file_load 403: clock_gettime64 clock_settime64
    clock_adjtime64 clock_getres_time64 clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64
    timerfd_settime64 utimensat_time64 pselect6_time64 ppoll_time64 416: io_pgetevents_time64 recvmmsg_time64
    mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 futex_time64
    sched_rr_get_interval_time64
    """,
    "s390x": """
    1: exit fork read write open close restart_syscall creat link unlink execve chdir 14: mknod chmod 19: lseek getpid
    mount umount 26: ptrace alarm 29: pause utime 33: access nice 36: sync kill rename mkdir rmdir dup pipe times 45:
    brk 48: signal 51: acct umount2 54: ioctl fcntl 57: setpgid 60: umask chroot ustat dup2 getppid getpgrp setsid
    sigaction 72: sigsuspend sigpending sethostname setrlimit 77: getrusage gettimeofday settimeofday 83: symlink 85:
    readlink uselib swapon reboot readdir mmap munmap truncate ftruncate fchmod 96: getpriority setpriority 99: statfs
    fstatfs 102: socketcall syslog setitimer getitimer stat lstat fstat 110: lookup_dcookie vhangup idle 114: wait4
    swapoff sysinfo ipc fsync sigreturn clone setdomainname uname 124: adjtimex mprotect sigprocmask create_module
    init_module delete_module get_kernel_syms quotactl getpgid fchdir bdflush sysfs personality afs_syscall 141:
    getdents select flock msync readv writev getsid fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam
    sched_getparam sched_setscheduler sched_getscheduler sched_yield sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval nanosleep mremap 167: query_module poll nfsservctl 172: prctl rt_sigreturn rt_sigaction
    rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 183: getcwd capget
    capset sigaltstack sendfile getpmsg putpmsg vfork getrlimit 198: lchown getuid getgid geteuid getegid setreuid
    setregid getgroups setgroups fchown setresuid getresuid setresgid getresgid chown setuid setgid setfsuid setfsgid
    pivot_root mincore madvise getdents64 222: readahead 224: setxattr lsetxattr fsetxattr getxattr lgetxattr
    fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr gettid tkill futex
    sched_setaffinity sched_getaffinity tgkill 243: io_setup io_destroy io_getevents io_submit io_cancel exit_group
    epoll_create epoll_ctl epoll_wait set_tid_address fadvise64 timer_create timer_settime timer_gettime
    timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep 265: statfs64 fstatfs64
    remap_file_pages mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
    mq_getsetattr kexec_load add_key request_key keyctl waitid ioprio_set ioprio_get inotify_init inotify_add_watch
    inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat
    symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice
    sync_file_range tee vmsplice move_pages getcpu epoll_pwait utimes fallocate utimensat signalfd timerfd eventfd
    timerfd_create timerfd_settime timerfd_gettime signalfd4 eventfd2 inotify_init1 pipe2 dup3 epoll_create1 preadv
    pwritev rt_tgsigqueueinfo perf_event_open fanotify_init fanotify_mark prlimit64 name_to_handle_at
    open_by_handle_at clock_adjtime syncfs setns process_vm_readv process_vm_writev s390_runtime_instr kcmp
    finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf s390_pci_mmio_write
    s390_pci_mmio_read execveat userfaultfd membarrier recvmmsg sendmmsg socket socketpair bind connect listen accept4
    getsockopt setsockopt getsockname getpeername sendto sendmsg recvfrom recvmsg shutdown mlock2 copy_file_range
    preadv2 pwritev2 s390_guarded_storage statx s390_sthyi kexec_file_load io_pgetevents rseq pkey_mprotect pkey_alloc
    pkey_free 392: semtimedop semget semctl shmget shmctl shmat shmdt msgget msgsnd msgrcv msgctl
    """,
    "powerpc": """
    0: restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time mknod chmod lchown
    break oldstat lseek getpid mount umount setuid getuid stime ptrace alarm oldfstat pause utime stty gtty access
    nice ftime sync kill rename mkdir rmdir dup pipe times prof brk setgid getgid signal geteuid getegid acct umount2
    lock ioctl fcntl mpx setpgid ulimit oldolduname umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask
    ssetmask setreuid setregid sigsuspend sigpending sethostname setrlimit getrlimit getrusage gettimeofday
    settimeofday getgroups setgroups select symlink oldlstat readlink uselib swapon reboot readdir mmap munmap
    truncate ftruncate fchmod fchown getpriority setpriority profil statfs fstatfs ioperm socketcall syslog setitimer
    getitimer stat lstat fstat olduname iopl vhangup idle vm86 wait4 swapoff sysinfo ipc fsync sigreturn clone
    setdomainname uname modify_ldt adjtimex mprotect sigprocmask create_module init_module delete_module
    get_kernel_syms quotactl getpgid fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents
    _newselect flock msync readv writev getsid fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam
    sched_getparam sched_setscheduler sched_getscheduler sched_yield sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval nanosleep mremap setresuid getresuid query_module poll nfsservctl setresgid getresgid prctl
    rt_sigreturn rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64
    pwrite64 chown getcwd capget capset sigaltstack sendfile getpmsg putpmsg vfork ugetrlimit readahead 198:
    pciconfig_read pciconfig_write pciconfig_iobase multiplexer getdents64 pivot_root 205: madvise mincore gettid
    tkill setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr
    lremovexattr fremovexattr futex sched_setaffinity sched_getaffinity 225: tuxcall 227: io_setup io_destroy
    io_getevents io_submit io_cancel set_tid_address fadvise64 exit_group lookup_dcookie epoll_create epoll_ctl
    epoll_wait remap_file_pages timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime
    clock_gettime clock_getres clock_nanosleep swapcontext tgkill utimes statfs64 fstatfs64 255: rtas
    sys_debug_setcontext 258: migrate_pages mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr kexec_load add_key request_key keyctl waitid ioprio_set ioprio_get
    inotify_init inotify_add_watch inotify_rm_watch spu_run spu_create pselect6 ppoll unshare splice tee vmsplice
    openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat
    faccessat get_robust_list set_robust_list move_pages getcpu epoll_pwait utimensat signalfd timerfd_create eventfd
    sync_file_range2 fallocate subpage_prot timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3
    pipe2 inotify_init1 perf_event_open preadv pwritev rt_tgsigqueueinfo fanotify_init fanotify_mark prlimit64 socket
    bind connect listen accept getsockname getpeername socketpair send sendto recv recvfrom shutdown setsockopt
    getsockopt sendmsg recvmsg recvmmsg accept4 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg
    setns process_vm_readv process_vm_writev finit_module kcmp sched_setattr sched_getattr renameat2 seccomp getrandom
    memfd_create bpf execveat switch_endian userfaultfd membarrier 378: mlock2 copy_file_range preadv2 pwritev2
    kexec_file_load statx pkey_alloc pkey_free pkey_mprotect rseq io_pgetevents 392: semtimedop semget semctl shmget
    shmctl shmat shmdt msgget msgsnd msgrcv msgctl
    """,
    "mips_o32": """
    0: syscall exit fork read write open close waitpid creat link unlink execve chdir time mknod chmod lchown break
    unused18 lseek getpid mount umount setuid getuid stime ptrace alarm unused28 pause utime stty gtty access nice
    ftime sync kill rename mkdir rmdir dup pipe times prof brk setgid getgid signal geteuid getegid acct umount2 lock
    ioctl fcntl mpx setpgid ulimit unused59 umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask ssetmask
    setreuid setregid sigsuspend sigpending sethostname setrlimit getrlimit getrusage gettimeofday settimeofday
    getgroups setgroups reserved82 symlink unused84 readlink uselib swapon reboot readdir mmap munmap truncate
    ftruncate fchmod fchown getpriority setpriority profil statfs fstatfs ioperm socketcall syslog setitimer getitimer
    stat lstat fstat unused109 iopl vhangup idle vm86 wait4 swapoff sysinfo ipc fsync sigreturn clone setdomainname
    uname modify_ldt adjtimex mprotect sigprocmask create_module init_module delete_module get_kernel_syms quotactl
    getpgid fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents _newselect flock msync
    readv writev cacheflush cachectl sysmips unused150 getsid fdatasync _sysctl mlock munlock mlockall munlockall
    sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_yield sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval nanosleep mremap accept bind connect getpeername getsockname
    getsockopt listen recv recvfrom recvmsg send sendmsg sendto setsockopt shutdown socket socketpair setresuid
    getresuid query_module poll nfsservctl setresgid getresgid prctl rt_sigreturn rt_sigaction rt_sigprocmask
    rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 chown getcwd capget capset
    sigaltstack sendfile getpmsg putpmsg mmap2 truncate64 ftruncate64 stat64 lstat64 fstat64 pivot_root mincore
    madvise getdents64 fcntl64 reserved221 gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
    listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill sendfile64 futex sched_setaffinity
    sched_getaffinity io_setup io_destroy io_getevents io_submit io_cancel exit_group lookup_dcookie epoll_create
    epoll_ctl epoll_wait remap_file_pages set_tid_address restart_syscall fadvise64 statfs64 fstatfs64 timer_create
    timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep
    tgkill utimes mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
    mq_getsetattr vserver waitid 280: add_key request_key keyctl set_thread_area inotify_init inotify_add_watch
    inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat fstatat64 unlinkat renameat linkat
    symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare splice sync_file_range tee vmsplice move_pages
    set_robust_list get_robust_list kexec_load getcpu epoll_pwait ioprio_set ioprio_get utimensat signalfd timerfd
    eventfd fallocate timerfd_create timerfd_gettime timerfd_settime signalfd4 eventfd2 epoll_create1 dup3 pipe2
    inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open accept4 recvmmsg fanotify_init fanotify_mark
    prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv
    process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf
    execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx
    rseq io_pgetevents 393: semget semctl shmget shmctl shmat shmdt msgget msgsnd msgrcv msgctl clock_gettime64
    clock_settime64 clock_adjtime64 clock_getres_time64 clock_nanosleep_time64 timer_gettime64 timer_settime64
    timerfd_gettime64 timerfd_settime64 utimensat_time64 pselect6_time64 ppoll_time64 416: io_pgetevents_time64
    recvmmsg_time64 mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 futex_time64
    sched_rr_get_interval_time64
    """,
    "mips_n64": """
    0: read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask ioctl
    pread64 pwrite64 readv writev access pipe _newselect sched_yield mremap msync mincore madvise shmget shmat shmctl
    dup dup2 pause nanosleep getitimer setitimer alarm getpid sendfile socket connect accept sendto recvfrom sendmsg
    recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone fork execve exit wait4
    kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate
    getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown
    lchown umask gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid geteuid
    getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid
    getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo
    rt_sigsuspend sigaltstack utime mknod personality ustat statfs fstatfs sysfs getpriority setpriority
    sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval mlock munlock mlockall munlockall vhangup pivot_root _sysctl prctl adjtimex setrlimit chroot
    sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname create_module init_module
    delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall reserved177 gettid
    readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr
    lremovexattr fremovexattr tkill reserved193 futex sched_setaffinity sched_getaffinity cacheflush cachectl sysmips
    io_setup io_destroy io_getevents io_submit io_cancel exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait
    remap_file_pages rt_sigreturn set_tid_address restart_syscall semtimedop fadvise64 timer_create timer_settime
    timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep tgkill utimes
    mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr vserver
    waitid 239: add_key request_key keyctl set_thread_area inotify_init inotify_add_watch inotify_rm_watch
    migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat
    fchmodat faccessat pselect6 ppoll unshare splice sync_file_range tee vmsplice move_pages set_robust_list
    get_robust_list kexec_load getcpu epoll_pwait ioprio_set ioprio_get utimensat signalfd timerfd eventfd fallocate
    timerfd_create timerfd_gettime timerfd_settime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv
    pwritev rt_tgsigqueueinfo perf_event_open accept4 recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at
    open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv process_vm_writev kcmp finit_module
    getdents64 sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd
    membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx rseq io_pgetevents
    """,
    "mips_n32": """
    0: read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask ioctl
    pread64 pwrite64 readv writev access pipe _newselect sched_yield mremap msync mincore madvise shmget shmat shmctl
    dup dup2 pause nanosleep getitimer setitimer alarm getpid sendfile socket connect accept sendto recvfrom sendmsg
    recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone fork execve exit wait4
    kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate
    getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown
    lchown umask gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid geteuid
    getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid
    getresgid getpgid setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo
    rt_sigsuspend sigaltstack utime mknod personality ustat statfs fstatfs sysfs getpriority setpriority
    sched_setparam sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min
    sched_rr_get_interval mlock munlock mlockall munlockall vhangup pivot_root _sysctl prctl adjtimex setrlimit chroot
    sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname create_module init_module
    delete_module get_kernel_syms query_module quotactl nfsservctl getpmsg putpmsg afs_syscall reserved177 gettid
    readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr
    lremovexattr fremovexattr tkill reserved193 futex sched_setaffinity sched_getaffinity cacheflush cachectl sysmips
    io_setup io_destroy io_getevents io_submit io_cancel exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait
    remap_file_pages rt_sigreturn fcntl64 set_tid_address restart_syscall semtimedop fadvise64 statfs64 fstatfs64
    sendfile64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime
    clock_getres clock_nanosleep tgkill utimes mbind get_mempolicy set_mempolicy mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr vserver waitid 243: add_key request_key keyctl set_thread_area
    inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat newfstatat
    unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare splice sync_file_range tee
    vmsplice move_pages set_robust_list get_robust_list kexec_load getcpu epoll_pwait ioprio_set ioprio_get utimensat
    signalfd timerfd eventfd fallocate timerfd_create timerfd_gettime timerfd_settime signalfd4 eventfd2 epoll_create1
    dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open accept4 recvmmsg getdents64
    fanotify_init fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns
    process_vm_readv process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom
    memfd_create bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc
    pkey_free statx rseq io_pgetevents 403: clock_gettime64 clock_settime64 clock_adjtime64 clock_getres_time64
    clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64 timerfd_settime64 utimensat_time64
    pselect6_time64 ppoll_time64 416: io_pgetevents_time64 recvmmsg_time64 mq_timedsend_time64 mq_timedreceive_time64
    semtimedop_time64 rt_sigtimedwait_time64 futex_time64 sched_rr_get_interval_time64
    """,
}
