"""Kernel constants that print formats leave as names: before 4.1 all, later where TRACE_DEFINE_ENUM was forgotten."""

from __future__ import annotations


def _numbered(*names: str, first: int = 0) -> dict[str, int]:
    return {name: first + index for index, name in enumerate(names)}


KERNEL_CONSTANTS: dict[str, int] = {
    "VMA_SHARED_BIT": 3,  # K:include/linux/mm.h
    "true": 1,
    "false": 0,
    "NULL": 0,
    # K:include/linux/interrupt.h
    **_numbered(
        "HI_SOFTIRQ",
        "TIMER_SOFTIRQ",
        "NET_TX_SOFTIRQ",
        "NET_RX_SOFTIRQ",
        "BLOCK_SOFTIRQ",
        "IRQ_POLL_SOFTIRQ",
        "TASKLET_SOFTIRQ",
        "SCHED_SOFTIRQ",
        "HRTIMER_SOFTIRQ",
        "RCU_SOFTIRQ",
    ),
    "BLOCK_IOPOLL_SOFTIRQ": 5,
    # K:include/linux/hrtimer.h
    "HRTIMER_NORESTART": 0,
    "HRTIMER_RESTART": 1,
    "HRTIMER_MODE_ABS": 0,
    "HRTIMER_MODE_REL": 1,
    "HRTIMER_MODE_PINNED": 2,
    "HRTIMER_MODE_ABS_PINNED": 2,
    "HRTIMER_MODE_REL_PINNED": 3,
    "HRTIMER_MODE_SOFT": 4,
    "HRTIMER_MODE_ABS_SOFT": 4,
    "HRTIMER_MODE_REL_SOFT": 5,
    "HRTIMER_MODE_ABS_PINNED_SOFT": 6,
    "HRTIMER_MODE_REL_PINNED_SOFT": 7,
    "HRTIMER_MODE_HARD": 8,
    "HRTIMER_MODE_ABS_HARD": 8,
    "HRTIMER_MODE_REL_HARD": 9,
    "HRTIMER_MODE_ABS_PINNED_HARD": 10,
    "HRTIMER_MODE_REL_PINNED_HARD": 11,
    # K:include/linux/migrate_mode.h, K:include/linux/compaction.h
    **_numbered("MIGRATE_ASYNC", "MIGRATE_SYNC_LIGHT", "MIGRATE_SYNC"),
    # K:include/linux/fs.h
    **_numbered("WB_SYNC_NONE", "WB_SYNC_ALL"),
    # K:arch/x86/include/asm/xen (mc.h, paravirt lazy modes)
    **_numbered("XEN_MC_FL_NONE", "XEN_MC_FL_BATCH", "XEN_MC_FL_ARGS", "XEN_MC_FL_CALLBACK"),
    **_numbered("XEN_MC_XE_OK", "XEN_MC_XE_BAD_OP", "XEN_MC_XE_NO_SPACE"),
    **_numbered("XEN_LAZY_NONE", "XEN_LAZY_MMU", "XEN_LAZY_CPU"),
    **_numbered("PARAVIRT_LAZY_NONE", "PARAVIRT_LAZY_MMU", "PARAVIRT_LAZY_CPU"),
    # K:include/linux/nvme.h
    "nvme_fabrics_command": 0x7F,
    "nvme_fabrics_type_property_set": 0,
    "nvme_fabrics_type_connect": 1,
    "nvme_fabrics_type_property_get": 4,
    "nvme_fabrics_type_auth_send": 5,
    "nvme_fabrics_type_auth_receive": 6,
    "nvme_cmd_flush": 0x00,
    "nvme_cmd_write": 0x01,
    "nvme_cmd_read": 0x02,
    "nvme_cmd_write_uncor": 0x04,
    "nvme_cmd_compare": 0x05,
    "nvme_cmd_write_zeroes": 0x08,
    "nvme_cmd_dsm": 0x09,
    "nvme_cmd_verify": 0x0C,
    "nvme_cmd_resv_register": 0x0D,
    "nvme_cmd_resv_report": 0x0E,
    "nvme_cmd_resv_acquire": 0x11,
    "nvme_cmd_resv_release": 0x15,
    "nvme_cmd_zone_mgmt_send": 0x79,
    "nvme_cmd_zone_mgmt_recv": 0x7A,
    "nvme_cmd_zone_append": 0x7D,
    "nvme_admin_delete_sq": 0x00,
    "nvme_admin_create_sq": 0x01,
    "nvme_admin_get_log_page": 0x02,
    "nvme_admin_delete_cq": 0x04,
    "nvme_admin_create_cq": 0x05,
    "nvme_admin_identify": 0x06,
    "nvme_admin_abort_cmd": 0x08,
    "nvme_admin_set_features": 0x09,
    "nvme_admin_get_features": 0x0A,
    "nvme_admin_async_event": 0x0C,
    "nvme_admin_ns_mgmt": 0x0D,
    "nvme_admin_activate_fw": 0x10,
    "nvme_admin_download_fw": 0x11,
    "nvme_admin_dev_self_test": 0x14,
    "nvme_admin_ns_attach": 0x15,
    "nvme_admin_keep_alive": 0x18,
    "nvme_admin_directive_send": 0x19,
    "nvme_admin_directive_recv": 0x1A,
    "nvme_admin_virtual_mgmt": 0x1C,
    "nvme_admin_nvme_mi_send": 0x1D,
    "nvme_admin_nvme_mi_recv": 0x1E,
    "nvme_admin_dbbuf": 0x7C,
    "nvme_admin_format_nvm": 0x80,
    "nvme_admin_security_send": 0x81,
    "nvme_admin_security_recv": 0x82,
    "nvme_admin_sanitize_nvm": 0x84,
    "nvme_admin_get_lba_status": 0x86,
    # K:include/uapi/linux/ioprio.h, K:include/scsi/scsi_cmnd.h, K:include/net/tcp_states.h
    **_numbered("IOPRIO_CLASS_NONE", "IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"),
    "IOPRIO_CLASS_INVALID": 7,
    **_numbered("SCSI_PROT_NORMAL", "SCSI_PROT_READ_INSERT", "SCSI_PROT_WRITE_STRIP", "SCSI_PROT_READ_STRIP",
                "SCSI_PROT_WRITE_INSERT", "SCSI_PROT_READ_PASS", "SCSI_PROT_WRITE_PASS"),
    **_numbered("TCP_ESTABLISHED", "TCP_SYN_SENT", "TCP_SYN_RECV", "TCP_FIN_WAIT1", "TCP_FIN_WAIT2", "TCP_TIME_WAIT",
                "TCP_CLOSE", "TCP_CLOSE_WAIT", "TCP_LAST_ACK", "TCP_LISTEN", "TCP_CLOSING", "TCP_NEW_SYN_RECV", first=1),
    # K:include/linux/migrate.h and K:include/linux/writeback.h of 3.x
    **_numbered("MR_COMPACTION", "MR_MEMORY_FAILURE", "MR_MEMORY_HOTPLUG", "MR_SYSCALL", "MR_MEMPOLICY_MBIND",
                "MR_NUMA_MISPLACED", "MR_CMA"),
    **_numbered("WB_REASON_BACKGROUND", "WB_REASON_TRY_TO_FREE_PAGES", "WB_REASON_SYNC", "WB_REASON_PERIODIC",
                "WB_REASON_LAPTOP_TIMER", "WB_REASON_FREE_MORE_MEM", "WB_REASON_FS_FREE_SPACE", "WB_REASON_FORKER_THREAD"),
    # K:include/linux/pm_qos.h
    **_numbered("PM_QOS_ADD_REQ", "PM_QOS_UPDATE_REQ", "PM_QOS_REMOVE_REQ"),
    **_numbered("PM_QOS_CPU_DMA_LATENCY", "PM_QOS_NETWORK_LATENCY", "PM_QOS_NETWORK_THROUGHPUT", first=1),
    **_numbered("DEV_PM_QOS_RESUME_LATENCY", "DEV_PM_QOS_LATENCY_TOLERANCE", "DEV_PM_QOS_MIN_FREQUENCY",
                "DEV_PM_QOS_MAX_FREQUENCY", "DEV_PM_QOS_FLAGS", first=1),
    # K:include/linux/mm_types.h
    "VM_FAULT_OOM": 1, "VM_FAULT_SIGBUS": 2, "VM_FAULT_MAJOR": 4, "VM_FAULT_WRITE": 8, "VM_FAULT_HWPOISON": 0x10,
    "VM_FAULT_HWPOISON_LARGE": 0x20, "VM_FAULT_SIGSEGV": 0x40, "VM_FAULT_NOPAGE": 0x100, "VM_FAULT_LOCKED": 0x200,
    "VM_FAULT_RETRY": 0x400, "VM_FAULT_FALLBACK": 0x800, "VM_FAULT_DONE_COW": 0x1000, "VM_FAULT_NEEDDSYNC": 0x2000,
    "VM_FAULT_COMPLETED": 0x4000,
    **{name: 1 << bit for bit, name in enumerate((
        "FAULT_FLAG_WRITE", "FAULT_FLAG_MKWRITE", "FAULT_FLAG_ALLOW_RETRY", "FAULT_FLAG_RETRY_NOWAIT",
        "FAULT_FLAG_KILLABLE", "FAULT_FLAG_TRIED", "FAULT_FLAG_USER", "FAULT_FLAG_REMOTE", "FAULT_FLAG_INSTRUCTION",
        "FAULT_FLAG_INTERRUPTIBLE", "FAULT_FLAG_UNSHARE", "FAULT_FLAG_ORIG_PTE_VALID", "FAULT_FLAG_VMA_LOCK"))},
    # K:include/linux/platform_data/cros_ec_commands.h
    **_numbered("EC_RES_SUCCESS", "EC_RES_INVALID_COMMAND", "EC_RES_ERROR", "EC_RES_INVALID_PARAM",
                "EC_RES_ACCESS_DENIED", "EC_RES_INVALID_RESPONSE", "EC_RES_INVALID_VERSION", "EC_RES_INVALID_CHECKSUM",
                "EC_RES_IN_PROGRESS", "EC_RES_UNAVAILABLE", "EC_RES_TIMEOUT", "EC_RES_OVERFLOW", "EC_RES_INVALID_HEADER",
                "EC_RES_REQUEST_TRUNCATED", "EC_RES_RESPONSE_TOO_BIG", "EC_RES_BUS_ERROR", "EC_RES_BUSY",
                "EC_RES_INVALID_HEADER_VERSION", "EC_RES_INVALID_HEADER_CRC", "EC_RES_INVALID_DATA_CRC",
                "EC_RES_DUP_UNAVAILABLE"),
    # K:include/soc/qcom/tcs.h, K:include/linux/mmzone.h, K:include/linux/nvme.h, K:fs/ext4/extents_status.h
    **_numbered("RPMH_SLEEP_STATE", "RPMH_WAKE_ONLY_STATE", "RPMH_ACTIVE_ONLY_STATE"),
    **_numbered("VMSCAN_THROTTLE_WRITEBACK", "VMSCAN_THROTTLE_ISOLATED", "VMSCAN_THROTTLE_NOPROGRESS",
                "VMSCAN_THROTTLE_CONGESTED"),
    "NVME_AER_ERROR": 0, "NVME_AER_SMART": 1, "NVME_AER_NOTICE": 2, "NVME_AER_CSS": 6, "NVME_AER_VS": 7,
    **_numbered("ES_WRITTEN_B", "ES_UNWRITTEN_B", "ES_DELAYED_B", "ES_HOLE_B", "ES_REFERENCED_B"),
    # K:include/linux/fs.h: names in print formats only since they are an enum
    **{name: 1 << bit for bit, name in enumerate((
        "I_NEW", "I_SYNC", "I_LRU_ISOLATING", "", "I_DIRTY_SYNC", "I_DIRTY_DATASYNC", "I_DIRTY_PAGES", "I_WILL_FREE",
        "I_FREEING", "I_CLEAR", "I_REFERENCED", "I_LINKABLE", "I_DIRTY_TIME", "I_WB_SWITCH", "I_OVL_INUSE", "I_CREATING",
        "I_DONTCACHE", "I_SYNC_QUEUED", "I_PINNING_NETFS_WB")) if name},
}

# Variables of the kernel whose value a recording does not have. They occur in the address of a struct page, which is
# printed with %p: the kernel hashes it, so nothing that could be compared is lost by taking them as 0.
KERNEL_VARIABLES = frozenset(
    ("vmemmap_base", "vmemmap", "memstart_addr", "mem_map", "page_offset_base", "phys_base", "vmalloc_base", "max_pfn")
)

# K:include/xen/interface/xen.h, for xen_hypercall_name().
XEN_HYPERCALLS: dict[int, str] = {
    0: "set_trap_table",
    1: "mmu_update",
    2: "set_gdt",
    3: "stack_switch",
    4: "set_callbacks",
    5: "fpu_taskswitch",
    6: "sched_op_compat",
    7: "dom0_op",
    8: "set_debugreg",
    9: "get_debugreg",
    10: "update_descriptor",
    12: "memory_op",
    13: "multicall",
    14: "update_va_mapping",
    15: "set_timer_op",
    16: "event_channel_op_compat",
    17: "xen_version",
    18: "console_io",
    19: "physdev_op_compat",
    20: "grant_table_op",
    21: "vm_assist",
    22: "update_va_mapping_otherdomain",
    23: "iret",
    24: "vcpu_op",
    25: "set_segment_base",
    26: "mmuext_op",
    27: "acm_op",
    28: "nmi_op",
    29: "sched_op",
    30: "callback_op",
    31: "xenoprof_op",
    32: "event_channel_op",
    33: "physdev_op",
    34: "hvm_op",
}
